/** The agent on a model of a node's kernel: the same suite runs on the kernel itself in test/kernel. */
import { describe } from 'vitest'
import { agentLifeSuite } from './agent/agent-life-suite'
import { agentObjectSuite } from './agent/agent-object-suite'
import { agentSuite } from './agent/agent-suite'
import { modelNode } from './agent/model-kernel'

describe('on the model: what is bound', () => agentSuite(modelNode))
describe('on the model: its life', () => agentLifeSuite(modelNode))
describe('on the model: its objects', () => agentObjectSuite(modelNode))
