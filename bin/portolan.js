#!/usr/bin/env node
import { existsSync } from 'node:fs'

const built = new URL('../dist/main.js', import.meta.url)
if (existsSync(built)) await import(built)
else {
  process.stderr.write('portolan: this checkout is not built yet; run `npm run setup` in it\n')
  process.exitCode = 2
}
