/** The agent on the kernel: the suite of test/agent-model.test.ts with veth pairs, real packets, and a turned clock. */
import { agentLifeSuite } from '../agent/agent-life-suite'
import { agentObjectSuite } from '../agent/agent-object-suite'
import { agentSuite } from '../agent/agent-suite'
import { kernelNode } from './agent-kernel'
import { describeKernel } from './describe-kernel'

describeKernel('the agent on this kernel: what is bound', () => agentSuite(kernelNode))
describeKernel('the agent on this kernel: its life', () => agentLifeSuite(kernelNode))
describeKernel('the agent on this kernel: its objects', () => agentObjectSuite(kernelNode))
