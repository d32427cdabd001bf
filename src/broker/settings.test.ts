import { expect, test } from 'vitest'
import { retentionOf } from './run-passes'
import { numberSettings, readSettings } from './settings'

test('39: an interval below the floor is the floor, blanks are trimmed, and what is no number is the default', () => {
  const read = (text: string) => readSettings({ PEER_LATE_RESOLVE_INTERVAL_SECS: text })
  expect(read('1').settings.lateResolveIntervalSeconds).toBe(5)
  expect(read(' 120\n').settings.lateResolveIntervalSeconds).toBe(120)
  expect(read(' 120\n').warnings).toEqual([])
  expect(read('soon').settings.lateResolveIntervalSeconds).toBe(60)
  expect(read('soon').warnings).toEqual(['PEER_LATE_RESOLVE_INTERVAL_SECS is "soon", no whole number; 60 is used'])
  expect(read('').warnings).toEqual([])
})

test('a window of 0 is off; an interval of 0 is the floor', () => {
  const { settings } = readSettings({ PEER_LATE_RESOLVE_WINDOW_SECS: '0', PEER_LATE_RESOLVE_INTERVAL_SECS: '0' })
  expect(settings.lateResolveWindowSeconds).toBe(0)
  expect(settings.lateResolveIntervalSeconds).toBe(5)
})

test('a flag beats the environment, and its warning names the flag', () => {
  const { settings, warnings } = readSettings({ PEER_STALE_ALIVE_SECS: '100' }, { staleAliveSeconds: '99999999999' })
  expect(settings.staleAliveSeconds).toBe(numberSettings.staleAliveSeconds.most)
  expect(warnings[0]).toMatch(/^--stale-alive is 99999999999, outside/)
})

test('42: dead pods are kept as long as verdicts, and for a week where no verdicts are kept', () => {
  const { settings } = readSettings({})
  expect(retentionOf(settings)).toMatchObject({ flowDays: 14, podDays: 30 })
  expect(retentionOf({ ...settings, verdictRetentionDays: 0 }).podDays).toBe(7)
})

test('no two settings share a name', () => {
  const all = Object.values(numberSettings)
  expect(new Set(all.map(({ environment }) => environment)).size).toBe(all.length)
  expect(new Set(all.map(({ flag }) => flag)).size).toBe(all.length)
})
