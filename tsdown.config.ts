import { defineConfig } from 'tsdown'

export default defineConfig({
  entry: ['src/cli/main.ts'],
  format: 'esm',
  platform: 'node',
  target: 'node20',
  dts: false,
  fixedExtension: false,
})
