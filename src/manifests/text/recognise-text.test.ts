import { expect, test } from 'vitest'
import { recogniseText } from './recognise-text'

test.each([
  ['Error from server (Forbidden): pods is forbidden: User "dev" cannot list resource', 'as a user who may read them'],
  ['error: You must be logged in to the server (Unauthorized)', 'as a user who may read them'],
  ['The connection to the server localhost:8080 was refused - did you specify the right host or port?', 'be reached'],
  ['Unable to connect to the server: dial tcp 10.0.0.1:6443: i/o timeout', 'be reached'],
  ['Error from server (NotFound): pods "web" not found', 'check the names'],
  ['error: the server doesn\'t have a resource type "pod5"', 'run the command again'],
])('%s is an error of kubectl, with a remedy', (text, remedy) => {
  const found = recogniseText(`\n${text}\nmore\n`)
  expect(found).toMatchObject({ isError: true, message: expect.stringContaining(remedy) })
  expect(found?.message).toContain('not the objects')
})

test.each([
  ['No resources found in shop namespace.', 'kubectl found no objects'],
  ['NAME    READY   STATUS    RESTARTS   AGE\nweb-0   1/1     Running   0          3d', 'a table of kubectl'],
  ['NAMESPACE   NAME    READY\nshop        web-0   1/1', 'a table of kubectl'],
  ['Name:             web-0\nNamespace:        shop', 'kubectl describe'],
  ['<!DOCTYPE html>\n<html>', 'a web page'],
  ['<html lang="en">', 'a web page'],
  ['<?xml version="1.0"?>', 'a web page (HTML) or XML'],
])('%j is told for what it is', (text, what) => {
  expect(recogniseText(text)).toMatchObject({ isError: false, message: expect.stringContaining(what) })
})

test.each(['kind: Pod', '{"kind": "Pod"}', 'NAME: web', 'Name: web', 'Error: x'.toLowerCase().slice(0, 4), '# <html>'])(
  '%j is none of them',
  (text) => {
    expect(recogniseText(text)).toBeUndefined()
  },
)
