/** A process that serves requests for an owner (`Owner`). It reads the database file itself and submits its transactions to the owner's writer. */
import { Effect, Layer, Runtime } from "effect"
import { Writer } from "../../books/ledger/write/Writer.ts"
import * as Counts from "../../kernel/Counts.ts"
import { Holds, once } from "../../kernel/Holds.ts"
import type { HoldsContract } from "../../kernel/Holds.ts"
import type { ConfigProblem } from "../../kernel/Setting.ts"
import { Siblings } from "../../operations/ops/Siblings.ts"
import type { Figures, SiblingsContract } from "../../operations/ops/Siblings.ts"
import { ReloadRefused } from "../../operations/operator/Problems.ts"
import { Peers } from "../../storage/engine/Peers.ts"
import type { PeersContract } from "../../storage/engine/Peers.ts"
import * as Sql from "../../storage/sqlite/Sql.ts"
import * as Config from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import type { Together } from "../Deployment.ts"
import * as Channel from "./Channel.ts"
import type { Handler } from "./Channel.ts"
import { feedOf } from "./Connections.ts"
import type { Feed } from "./Connections.ts"
import * as Local from "./Local.ts"
import { outcomeOf } from "./Owner.ts"
import * as Subjects from "./Subjects.ts"

export interface Office {
  readonly begun: Subjects.Begun
  readonly name: string
  readonly ask: Channel.Channel["ask"]
  readonly handlers: Map<string, Handler>
  readonly local: Local.Local
  readonly feed: Feed
  /** The newest configuration text from the owner. */
  text: string
}

/** Connects to the owner. */
export const connect = (number: number): Effect.Effect<Office> =>
  Effect.promise(async () => {
    const local = Local.make()
    const handlers = new Map<string, Handler>()
    const { ask, receive } = Channel.make(
      (message) => void process.send!(message),
      (subject) => handlers.get(subject)
    )
    process.on("message", receive)
    // The owner has ended, and with it the writer and the port.
    process.once("disconnect", () => process.exit(1))
    handlers.set(Subjects.alive, () => null)
    handlers.set(Subjects.signal, (value) => {
      const { ids, topic } = value as Subjects.SignalSent
      local.tell(topic, ids)
      return null
    })
    handlers.set(Subjects.lapse, () => {
      local.tellLapse()
      return null
    })
    handlers.set(Subjects.figures, local.figures)
    const begun = (await ask(Subjects.begin, null, Subjects.replyTimeouts.begin)) as Subjects.Begun
    const leave = () => void ask(Subjects.leaving, null, Subjects.replyTimeouts.brief).catch(() => {})
    const feed = feedOf(begun.address, leave)
    process.on("message", feed.receive)
    return { begun, name: `worker ${number}`, ask, handlers, local, feed, text: begun.text }
  })

/** Reads the owner's newest text. `path` is the file's path, for errors. */
export const read = (office: Office, path: string): Effect.Effect<ConfigFile, ConfigProblem> =>
  Effect.map(
    Effect.suspend(() => Config.parse(office.text, path)),
    (file) => shared(file, office.begun.workers)
  )

/** The smallest budget for bodies that a process can work with, in bytes. */
const bytesMin = 128 * 1024 * 1024

/** Divides the budget for bodies among the workers. */
const shared = (file: ConfigFile, workers: number): ConfigFile => ({
  ...file,
  bodies: { ...file.bodies, bytes_total: Math.max(bytesMin, Math.floor(file.bodies.bytes_total / workers)) }
})

export const make = (office: Office, database: string) => ({
  database: Writer.layerSocket(office.begun.door).pipe(
    Layer.provideMerge(Sql.layer(database)),
    Layer.provideMerge(
      Layer.mergeAll(
        Layer.succeed(Peers, peersOf(office)),
        Layer.succeed(Siblings, siblingsOf(office)),
        Layer.succeed(Counts.Counts, countsOf(office)),
        Layer.succeed(Holds, holdsOf(office))
      )
    )
  ),
  together: togetherOf(office)
})

/** Tells the owner that this process is ready for connections. */
export const accept = (office: Office) =>
  Effect.promise(() =>
    office.ask(Subjects.ready, { text: office.text } satisfies Subjects.Reloading, Subjects.replyTimeouts.begin)
  )

const peersOf = ({ ask, begun, local, name }: Office): PeersContract => ({
  node: {
    name,
    lease: undefined,
    leads: () => false,
    leader: () => "owner",
    nodes: () => begun.workers + 1,
    on: local.on
  },
  signals: {
    publish: (topic, ids) =>
      Effect.tryPromise(() =>
        ask(Subjects.signal, { topic, ids } satisfies Subjects.SignalSent, 2 * Subjects.replyTimeouts.brief)
      ).pipe(
        Effect.catchAll(({ cause }) =>
          Effect.annotateLogs(Effect.logWarning("the other processes could not be notified", cause), "topic", topic)
        )
      ),
    subscribe: local.subscribe
  }
})

const siblingsOf = ({ ask, local, name }: Office): SiblingsContract => ({
  name,
  answer: local.answer,
  others: Effect.tryPromise(() => ask(Subjects.figures, null, 2 * Subjects.replyTimeouts.brief)).pipe(
    Effect.map((figures) => figures as ReadonlyArray<Figures>),
    Effect.orElseSucceed(() => [])
  )
})

/** Counts at the owner, or here if the owner does not reply. */
const countsOf = ({ ask }: Office): Counts.CountsContract => {
  const own = Counts.make()
  return {
    add: (key, period_ms, now) =>
      Effect.tryPromise(() =>
        ask(Subjects.count, { key, period_ms, now } satisfies Subjects.Counted, Subjects.replyTimeouts.brief)
      ).pipe(
        Effect.map(Number),
        Effect.orElse(() => Effect.sync(() => own.add(key, period_ms, now)))
      )
  }
}

/** Claims slots from the owner. If the owner does not reply, the limit does not apply, and a slot that it may have granted is released. */
const holdsOf = ({ ask }: Office): HoldsContract => {
  const release = (key: string) => void ask(Subjects.release, key, Subjects.replyTimeouts.brief).catch(() => {})
  return {
    take: (key, most) =>
      Effect.promise(() =>
        ask(Subjects.hold, { key, most } satisfies Subjects.Held, Subjects.replyTimeouts.brief).then(
          (isFree) => (isFree === true ? once(() => release(key)) : undefined),
          () => {
            release(key)
            return () => {}
          }
        )
      )
  }
}

/** Forwards reload requests to the owner, and reloads this process on the owner's request. */
const togetherOf =
  (office: Office): Together =>
  (own) =>
    Effect.gen(function* () {
      const { ask, handlers } = office
      const runtime = yield* Effect.runtime<never>()
      handlers.set(Subjects.reload, async (value) => {
        office.text = (value as Subjects.Reloading).text
        const outcome = await Runtime.runPromise(runtime)(outcomeOf(own))
        // The owner has accepted this text, so the process that replaces this one begins with it.
        if ("refused" in outcome) process.kill(process.pid, "SIGTERM")
        return outcome
      })
      return Effect.tryPromise(() => ask(Subjects.reload, null, 2 * Subjects.replyTimeouts.reload)).pipe(
        Effect.mapError(({ cause }) => new ReloadRefused({ message: String(cause) })),
        Effect.flatMap((reply) => {
          const outcome = reply as Subjects.ReloadOutcome
          return "refused" in outcome ? new ReloadRefused({ message: outcome.refused }) : Effect.succeed(outcome)
        })
      )
    })
