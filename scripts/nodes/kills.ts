// Kills three nodes on one PostgreSQL database one after another, under load. Reports the callers' errors at the other nodes, how long a killed
// node's reservations stay open, and whether the charges are correct. `npm run nodes:kills` runs fifty kills (`--kills N`) in a few minutes.
import { Client } from "pg"
import { chatBody } from "../bench/calls.ts"
import { count, print } from "../bench/frame.ts"
import { sleep } from "../bench/processes.ts"
import { Callers } from "./callers.ts"
import { deploy, seconds, within } from "./deployment.ts"

/** The minimum and maximum time under load before a node is killed, in milliseconds. */
const loadDuration = [300, 1_500] as const
/** The number of concurrent callers at each node. */
const concurrency = 8
const pollInterval = 500
/** The lease duration in milliseconds. `noticeDelay` is how long other nodes may take to notice its expiry. They check every five seconds. */
const lease = 20_000
const noticeDelay = 10_000

const asked = process.argv.indexOf("--kills")
const kills = asked < 0 ? 50 : Number(process.argv[asked + 1])

interface Killed {
  readonly run: string
  readonly at: number
  /** The maximum number of open reservations, and the time of the last observation of one. */
  open: number
  lastOpen: number
}

await within(async (directory) => {
  const { database, keysAt, nodes, settle, startNode } = await deploy(directory)
  const base = (port: number) => `http://127.0.0.1:${port}`
  const keys = await keysAt(base(nodes[0]!.port))
  const callers = nodes.map(
    ({ port }) => new Callers(`${base(port)}/v1/chat/completions`, keys, chatBody({}), concurrency)
  )
  for (const one of callers) one.begin()

  const reader = new Client(database)
  await reader.connect()
  const runOf = async (name: string): Promise<string> =>
    (
      await reader.query<{ run: string }>(
        "SELECT run FROM tollgate_sql_nodes WHERE name = $1 ORDER BY started_at DESC LIMIT 1",
        [name]
      )
    ).rows[0]!.run
  const killed: Array<Killed> = []
  const look = async (): Promise<void> => {
    const { rows } = await reader.query<{ run: string; open: number }>(
      "SELECT run, count(*)::int AS open FROM tollgate_ledger_reservations GROUP BY run"
    )
    for (const one of killed) {
      const open = rows.find(({ run }) => run === one.run)?.open ?? 0
      if (open > 0) one.lastOpen = performance.now()
      one.open = Math.max(one.open, open)
    }
  }
  const over = new AbortController()
  const looking = (async () => {
    while (!over.signal.aborted) {
      await look()
      await sleep(pollInterval)
    }
  })()

  let errors = 0
  for (let kill = 0; kill < kills; kill++) {
    const place = kill % nodes.length
    const { name, port } = nodes[place]!
    const others = callers.filter((_, i) => i !== place)
    await sleep(loadDuration[0] + Math.random() * (loadDuration[1] - loadDuration[0]))
    const run = await runOf(name)
    const before = others.map(({ unanswered }) => unanswered)
    nodes[place]!.child.kill("SIGKILL")
    const now = performance.now()
    killed.push({ run, at: now, open: 0, lastOpen: now })
    await look()
    callers[place]!.rest()
    nodes[place] = await startNode(name, port)
    callers[place]!.goOn()
    errors += others.reduce((sum, { unanswered }, i) => sum + unanswered - before[i]!, 0)
    if ((kill + 1) % 10 === 0)
      print(
        `${kill + 1} kills: ${count(callers.reduce((sum, { acknowledged }) => sum + acknowledged, 0))} calls succeeded, ` +
          `${errors} failed at live nodes; ${callers.map((one) => `[${one.takeCounts()}]`).join(" ")}`
      )
  }
  await Promise.all(callers.map((one) => one.end()))
  // The last node's reservations are also released once its lease ends.
  while (killed.some(({ lastOpen }) => performance.now() - lastOpen < 2 * pollInterval)) await sleep(pollInterval)
  over.abort()
  await looking
  await reader.end()

  const left = killed.filter(({ open }) => open > 0)
  const times = left.map(({ at, lastOpen }) => lastOpen - at)
  print(
    `\n${kills} kills; ${left.length} of them left reservations open, ${left.reduce((sum, { open }) => sum + open, 0)} in total; ` +
      `the last one of a node was released after at most ${seconds(Math.max(0, ...times))}.`
  )
  const late = times.filter((time) => time > lease + noticeDelay).length
  await settle({
    acknowledged: callers.reduce((sum, { acknowledged }) => sum + acknowledged, 0),
    unanswered: callers.reduce((sum, { unanswered }) => sum + unanswered, 0)
  })
  if (errors > 0) throw new Error(`${errors} calls failed at nodes that were not killed`)
  if (late > 0)
    throw new Error(`after ${late} kills, reservations remained for longer than a lease and ${seconds(noticeDelay)}`)
})
