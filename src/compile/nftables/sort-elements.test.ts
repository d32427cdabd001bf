/** The order in which nft 1.0.6 lists elements. */
import { expect, test } from 'vitest'
import { constant, type Element, type Expression } from './expression'
import { concat } from './rule-parts'
import { sortElements } from './sort-elements'

function keysOf(elements: readonly Element[]): readonly string[] {
  return elements.map(({ key }) => textOf(key))
}

function textOf(key: Expression): string {
  if (key.kind === 'concat') return key.parts.map(textOf).join(' . ')
  return key.kind === 'value' ? String(key.value) : key.kind
}

function keyed(...keys: readonly (string | number | readonly (string | number)[])[]): readonly Element[] {
  return keys.map((key) => ({ key: Array.isArray(key) ? concat(...key.map(constant)) : constant(key as string) }))
}

test('addresses ascend by number, not by text', () => {
  expect(keysOf(sortElements(keyed('10.0.0.10', '10.0.0.9', '9.0.0.1', '10.96.0.1'), ['ipv4_addr']))).toEqual([
    '9.0.0.1',
    '10.0.0.9',
    '10.0.0.10',
    '10.96.0.1',
  ])
  expect(keysOf(sortElements(keyed('fd00::10', 'fd00::9', '::1'), ['ipv6_addr']))).toEqual([
    '::1',
    'fd00::9',
    'fd00::10',
  ])
})

test('N3: the low byte of the port leads, then its high byte, the protocol, and the address from its end', () => {
  const keys = keyed(
    ['10.96.0.1', 'tcp', 443],
    ['10.96.20.4', 'tcp', 6379],
    ['10.96.0.10', 'udp', 53],
    ['10.96.0.10', 'tcp', 53],
    ['10.96.20.1', 'tcp', 80],
    ['10.96.10.1', 'tcp', 80],
    ['198.51.100.20', 'tcp', 80],
  )
  expect(keysOf(sortElements(keys, ['ipv4_addr', 'inet_proto', 'inet_service']))).toEqual([
    '10.96.0.10 . tcp . 53',
    '10.96.0.10 . udp . 53',
    '10.96.10.1 . tcp . 80',
    '10.96.20.1 . tcp . 80',
    '198.51.100.20 . tcp . 80',
    '10.96.0.1 . tcp . 443',
    '10.96.20.4 . tcp . 6379',
  ])
})

test('N4: of ports with one low byte the smaller high byte is first', () => {
  const keys = keyed(['tcp', 257], ['tcp', 2], ['tcp', 1], ['udp', 1])
  expect(keysOf(sortElements(keys, ['inet_proto', 'inet_service']))).toEqual([
    'tcp . 1',
    'udp . 1',
    'tcp . 257',
    'tcp . 2',
  ])
})
