import { expect, test } from 'vitest'
import { fieldErrors } from './field-errors'

test.each([
  [['Allow', 'WouldDeny'], 'must be one of Allow, WouldDeny'],
  [['Allow', 'WouldDeny', ''], 'must be one of Allow, WouldDeny, or be left blank'],
])('a word of %j is told as such', (allowedValues, message) => {
  expect(fieldErrors([{ keyword: 'enum', instancePath: '/verdict', params: { allowedValues } }], 'query')).toEqual([
    { field: 'query.verdict', message },
  ])
})
