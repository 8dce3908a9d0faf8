/** The owner's connections to its workers. Signals, limits and figures go through the owner. */
import { Effect } from "effect"
import * as Counts from "../../kernel/Counts.ts"
import { once, SlotCounts } from "../../kernel/Holds.ts"
import type { HoldsContract } from "../../kernel/Holds.ts"
import type { Figures, SiblingsContract } from "../../operations/ops/Siblings.ts"
import type { PeersContract } from "../../storage/engine/Peers.ts"
import { ProcessEnded } from "./Channel.ts"
import type { Channel, Handler } from "./Channel.ts"
import * as Local from "./Local.ts"
import * as Subjects from "./Subjects.ts"

export interface Hub {
  readonly peers: PeersContract
  readonly siblings: SiblingsContract
  readonly counts: Counts.CountsContract
  readonly holds: HoldsContract
  /** The open channels, by worker number. */
  readonly channels: Map<number, Channel>
  /** Handlers of further subjects, called with the worker's number. */
  readonly handlers: Map<string, (value: unknown, worker: number) => unknown>
  readonly handlerOf: (worker: number) => (subject: string) => Handler | undefined
  /** Sends a request to all workers, or to all but one. Returns the replies. A worker that does not reply is logged and left out. */
  readonly askAll: (request: Request) => Promise<ReadonlyArray<unknown>>
  /** Releases an ended worker's slots and notifies all processes. */
  readonly lapsed: (worker: number) => void
}

interface Request {
  readonly subject: string
  readonly value: unknown
  readonly patience: number
  readonly except?: number | undefined
}

interface Parts extends Pick<Hub, "askAll" | "channels" | "counts" | "handlers"> {
  readonly local: Local.Local
  readonly places: ReturnType<typeof placesOf>
}

/** `warn` logs that a worker does not respond. */
export const make = (warn: (worker: number, error: unknown) => void): Hub => {
  const counters = Counts.make()
  const channels = new Map<number, Channel>()
  const parts: Parts = {
    channels,
    handlers: new Map(),
    askAll: askAll(channels, warn),
    counts: { add: (key, period_ms, now) => Effect.sync(() => counters.add(key, period_ms, now)) },
    local: Local.make(),
    places: placesOf()
  }
  const { counts, handlers, local, places } = parts
  handle(parts)
  return {
    channels,
    handlers,
    counts,
    askAll: parts.askAll,
    handlerOf: (worker) => (subject) => {
      const handler = handlers.get(subject)
      return handler && ((value) => handler(value, worker))
    },
    lapsed: (worker) => {
      places.ended(worker)
      setTimeout(() => {
        local.tellLapse()
        void parts.askAll({ subject: Subjects.lapse, value: null, patience: Subjects.replyTimeouts.brief })
      }, leftoversMillis).unref()
    },
    peers: peersOf(parts),
    siblings: {
      name: "owner",
      answer: local.answer,
      others: Effect.promise(() => figuresOfWorkers(parts))
    },
    holds: {
      take: (key, most) =>
        Effect.sync(() => (places.take(0, key, most) ? once(() => places.release(0, key)) : undefined))
    }
  }
}

/**
 * How long to wait until the reservations of a worker that ended are released. The writer may still have to read settlements that the worker sent. A
 * settlement in the same batch as the release of its reservation would charge nothing.
 */
const leftoversMillis = 1_000

const askAll =
  (channels: Hub["channels"], warn: (worker: number, error: unknown) => void): Hub["askAll"] =>
  async ({ except, patience, subject, value }) => {
    const replies = await Promise.all(
      [...channels]
        .filter(([worker]) => worker !== except)
        .map(([worker, channel]) =>
          channel.ask(subject, value, patience).then(
            (reply) => ({ reply }),
            // That a worker has ended is logged where it is replaced.
            (error: unknown) => {
              if (!(error instanceof ProcessEnded)) warn(worker, error)
              return undefined
            }
          )
        )
    )
    return replies.flatMap((one) => (one === undefined ? [] : [one.reply]))
  }

/** Passes a signal on to the workers. */
const relay = ({ askAll }: Parts, value: Subjects.SignalSent, except?: number) =>
  askAll({ subject: Subjects.signal, value, patience: Subjects.replyTimeouts.brief, except })

/** Collects the ready workers' figures. */
const figuresOfWorkers = async ({ askAll }: Parts, except?: number) => {
  const patience = Subjects.replyTimeouts.brief
  const replies = await askAll({ subject: Subjects.figures, value: null, patience, except })
  return (replies as ReadonlyArray<Figures | null>).filter((figures) => figures !== null)
}

/** Handles workers' requests, except lifecycle (`Fleet`) and reload (`Owner`) requests. */
const handle = (parts: Parts): void => {
  const { counts, handlers, local, places } = parts
  handlers.set(Subjects.signal, async (value, worker) => {
    const { ids, topic } = value as Subjects.SignalSent
    local.tell(topic, ids)
    await relay(parts, { topic, ids }, worker)
    return null
  })
  handlers.set(Subjects.count, (value) => {
    const { key, now, period_ms } = value as Subjects.Counted
    return Effect.runSync(counts.add(key, period_ms, now))
  })
  handlers.set(Subjects.hold, (value, worker) => {
    const { key, most } = value as Subjects.Held
    return places.take(worker, key, most)
  })
  handlers.set(Subjects.release, (value, worker) => {
    places.release(worker, value as string)
    return null
  })
  handlers.set(Subjects.figures, async (_, worker) => {
    const own = await local.figures()
    return [...(own === null ? [] : [own]), ...(await figuresOfWorkers(parts, worker))]
  })
}

const peersOf = (parts: Parts): PeersContract => ({
  node: {
    name: "owner",
    lease: undefined,
    leads: () => true,
    leader: () => "owner",
    nodes: () => parts.channels.size + 1,
    on: parts.local.on
  },
  signals: {
    publish: (topic, ids) => Effect.asVoid(Effect.promise(() => relay(parts, { topic, ids }))),
    subscribe: parts.local.subscribe
  }
})

/** The places that processes hold. The owner's number is 0. */
const placesOf = () => {
  const all = new SlotCounts()
  const byProcess = new Map<number, Array<string>>()
  return {
    take: (number: number, key: string, most: number): boolean => {
      if (all.of(key) >= most) return false
      all.add(key)
      byProcess.set(number, [...(byProcess.get(number) ?? []), key])
      return true
    },
    release: (number: number, key: string): void => {
      const own = byProcess.get(number) ?? []
      const at = own.indexOf(key)
      // A place that was never taken, because the request for it came too late.
      if (at === -1) return
      own.splice(at, 1)
      all.remove(key)
    },
    ended: (number: number): void => {
      for (const key of byProcess.get(number) ?? []) all.remove(key)
      byProcess.delete(number)
    }
  }
}
