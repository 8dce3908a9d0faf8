/** The thread that renews a node's lease (`Renewal`). */
import { Redacted } from "effect"
import { workerData } from "node:worker_threads"
import { now } from "./LeaseTask.ts"
import type { Task } from "./LeaseTask.ts"
import { TargetClient, targetOf } from "./Target.ts"

const { beats, every, patience, renewedAt, run, stuckAfter, text, url } = workerData as Task

let client: TargetClient | undefined

const connected = async (): Promise<TargetClient> => {
  if (client !== undefined) return client
  const fresh = new TargetClient({
    ...targetOf(Redacted.make(url)),
    connectionTimeoutMillis: patience,
    query_timeout: patience,
    keepAlive: true,
    application_name: "tollgate lease"
  })
  const lost = () => {
    if (client === fresh) client = undefined
  }
  fresh.on("error", lost)
  fresh.on("end", lost)
  await fresh.connect()
  return (client = fresh)
}

const renew = async (): Promise<void> => {
  const at = now()
  try {
    const { rowCount } = await (await connected()).query(text, [run])
    if (rowCount === 1) Atomics.store(renewedAt, 0, BigInt(at))
  } catch {
    // The next iteration retries. The main thread logs the fault, because its own renewals fail too.
    const broken = client
    client = undefined
    broken?.end().catch(() => {})
  }
}

/**
 * Renews the lease as long as the main thread sends heartbeats. This must be a function, because scripts in the single executable cannot use
 * top-level await.
 */
const renewWhileAlive = async (): Promise<never> => {
  let lastBeat = Atomics.load(beats, 0)
  let lastBeatAt = now()
  for (;;) {
    await new Promise((done) => setTimeout(done, every))
    const beat = Atomics.load(beats, 0)
    if (beat !== lastBeat) {
      lastBeat = beat
      lastBeatAt = now()
    }
    if (now() - lastBeatAt < stuckAfter) await renew()
  }
}

void renewWhileAlive()
