import { defineConfig } from 'tsdown'

export default defineConfig({
  entry: { main: 'src/cli/main.ts', 'embedded-worker': 'src/store/embedded-worker.ts' },
  format: 'esm',
  platform: 'node',
  target: 'node20',
  dts: false,
  fixedExtension: false,
})
