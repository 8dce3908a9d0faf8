// Runs three nodes on one PostgreSQL database behind HAProxy, kills nodes and stops the database under load, and reports the callers' results and
// whether the charges are correct. `npm run nodes` takes one to three minutes. The README explains the output.
import { chatBody } from "../bench/calls.ts"
import { print } from "../bench/frame.ts"
import { sleep } from "../bench/processes.ts"
import { balance } from "./balancer.ts"
import { Callers } from "./callers.ts"
import { deploy, seconds, until, within } from "./deployment.ts"

/** How long each phase of load lasts, in milliseconds. */
const phase = 4_000

await within(async (directory) => {
  const { database, keysAt, nodes, server, settle, startNode } = await deploy(directory)
  const port = await balance(directory, nodes)
  const base = `http://127.0.0.1:${port}`
  print(`${nodes.length} nodes over ${database.replace(/:[^:@]*@/, "@")}, HAProxy on port ${port}`)
  const callers = new Callers(`${base}/v1/chat/completions`, await keysAt(base), chatBody({}))
  callers.begin()
  const show = (what: string) => print(`${what.padEnd(44)} ${callers.takeCounts()}`)

  await sleep(phase)
  show("all nodes running")
  for (const [i, node] of nodes.entries()) {
    node.child.kill("SIGKILL")
    await sleep(phase)
    show(`${node.name} killed under load`)
    const began = performance.now()
    nodes[i] = await startNode(node.name, node.port)
    await sleep(1_000)
    show(`${node.name} started again (ready after ${seconds(performance.now() - began - 1_000)})`)
  }
  await server.crash("SIGQUIT")
  await sleep(phase)
  show("PostgreSQL stopped (immediate)")
  await server.restart()
  const back = await until("calls succeed again", async () => callers.isServed())
  show(`PostgreSQL started again, calls after ${seconds(back)}`)
  await sleep(phase)
  show("all nodes running")
  await callers.end()

  await settle(callers)
})
