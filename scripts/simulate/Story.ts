/**
 * A story is data generated from a seed: an array of timed actions and faults. Any subsequence of its steps is also a story, so failing stories can
 * be shortened.
 */
import { random } from "./machine/Random.ts"
import type { Random } from "./machine/Random.ts"
import type { StorageFault } from "./machine/Storage.ts"

/** A vendor's behavior in a call: normal, or with a fault. */
export type Manner =
  | { readonly kind: "well" }
  | { readonly kind: "late" | "paced"; readonly millis: number }
  | { readonly kind: "cut" }
  /** The vendor ends its response midway, as if it were complete. */
  | { readonly kind: "stops" }
  /** The vendor rejects the call. With `answers`, the error's body looks like a normal response. */
  | { readonly kind: "refuses"; readonly status: number; readonly answers?: boolean }
  | { readonly kind: "absurd" }
  | { readonly kind: "uncounted" }
  /** The vendor ends a Responses stream with an event that is too long to buffer. */
  | { readonly kind: "long" }

/** When a client disconnects: after this many bytes sent or received, or after this many milliseconds. */
export interface Leaving {
  readonly sent?: number
  readonly received?: number
  readonly after?: number
}

export type ProtocolName = "chat" | "text" | "messages" | "responses"

/** The tools that respond immediately. */
export const tools = ["embeddings", "rerank", "decisions", "speech", "images"] as const
export type Tool = (typeof tools)[number]

/** Limits in thousandths of a USD, tokens, requests and open calls. */
export interface LimitOf {
  readonly mills?: number
  readonly tokens?: number
  readonly requests?: number
  readonly concurrent?: number
}

export type BudgetPeriod = "minute" | "hour" | "day" | "week" | "month" | "total"

export type Deed =
  | {
      readonly do: "chat"
      readonly who: number
      /** The default is chat. */
      readonly protocol?: ProtocolName
      readonly model: "sandbox-small" | "sandbox-large" | "sandbox-fraction" | "sandbox-failover"
      readonly stream: boolean
      readonly limit: number | undefined
      readonly manner: Manner
      readonly leaves: Leaving | undefined
      /** Whether the request has an Idempotency-Key. */
      readonly keyed: boolean
      /** Whether the request uses the key with a spending limit. */
      readonly limited: boolean
      /** Set if the request uses the budget key or a run's key. */
      readonly under?: "key" | number
      /** The number of additional words in the prompt. The total number of words identifies the call. */
      readonly length: number
    }
  /** Repeats a request with an Idempotency-Key, selected by `which`. Negative numbers count from the newest request. */
  | { readonly do: "again"; readonly which: number }
  | { readonly do: "search"; readonly who: number; readonly manner: Manner; readonly leaves: Leaving | undefined }
  | {
      readonly do: "use"
      readonly who: number
      readonly tool: Tool
      readonly manner: Manner
      readonly leaves: Leaving | undefined
    }
  | {
      readonly do: "media"
      readonly who: number
      readonly seconds: number
      readonly manner: Manner
      readonly leaves: Leaving | undefined
    }
  | { readonly do: "look"; readonly which: number; readonly cancel: boolean }
  | {
      readonly do: "send"
      readonly who: number
      readonly to: number | "stranger"
      /** `giftable` means all giftable credit, and `everything` means the entire balance. */
      readonly cents: number | "giftable" | "everything"
      readonly twice: boolean
      readonly leaves: Leaving | undefined
    }
  | { readonly do: "answer"; readonly which: number; readonly how: "accept" | "decline" | "revoke" | "race" }
  | { readonly do: "buy"; readonly who: number; readonly credits: number; readonly manner: Manner }
  | {
      readonly do: "reload"
      readonly who: number
      readonly card: "pm_card_visa" | "pm_card_declined"
      readonly threshold: number
      readonly manner: Manner
      /** The request that triggers this behavior; by default, the settings request. */
      readonly at?: "settings" | "charge"
    }
  | {
      readonly do: "payment"
      readonly which: number
      readonly what: "refund" | "refund_fail" | "dispute" | "win"
      readonly cents: number
    }
  /** Delivers one of the processor's events, possibly again. */
  | { readonly do: "deliver"; readonly which: number; readonly leaves: Leaving | undefined }
  | { readonly do: "pin"; readonly who: number; readonly team: boolean }
  /** The owner of the team removes a member. */
  | { readonly do: "remove"; readonly who: number }
  /** Changes the limit of the limited key, in thousandths of a USD. */
  | { readonly do: "limit"; readonly who: number; readonly mills: number }
  | {
      readonly do: "budget"
      readonly who: number
      /** The calls that the budget counts: all of the user's calls, or calls with the budget key. */
      readonly on: "tenant" | "key"
      readonly period: BudgetPeriod
      readonly limit: LimitOf
      readonly mode: "refuse" | "notify"
    }
  | { readonly do: "rebudget"; readonly which: number; readonly limit: LimitOf; readonly mode: "refuse" | "notify" }
  | { readonly do: "raise"; readonly which: number; readonly mills: number; readonly millis: number }
  /** Deletes a budget. */
  | { readonly do: "drop"; readonly which: number }
  /** Creates a run. With `wide`, a run below another run requests a higher limit than its parent has. */
  | {
      readonly do: "run"
      readonly who: number
      readonly under: "key" | number
      readonly limit: LimitOf
      readonly seconds: number
      readonly wide: boolean
    }
  | { readonly do: "end"; readonly which: number }
  /** A user reads a budget or a run. */
  | { readonly do: "check"; readonly which: number }
  | { readonly do: "join"; readonly who: number }
  | { readonly do: "mail"; readonly manner: Manner }
  | { readonly do: "crash" }
  | { readonly do: "stop" }
  | ({ readonly do: "disk" } & StorageFault)
  | {
      readonly do: "full"
      readonly millis: number
      readonly moment: "begin" | "statement" | "commit"
      readonly error: string
    }
  /** The read connection fails, either once after a number of statements or continuously for some time. */
  | { readonly do: "read"; readonly after: number; readonly millis: number; readonly error: string }
  | { readonly do: "hang"; readonly millis: number; readonly way: "to" | "from" }
  | { readonly do: "thread" }
  /** The service's lease lapses. Another host releases its open calls, although the service is still working on them. */
  | { readonly do: "lapse" }
  | { readonly do: "clock"; readonly millis: number }

export interface Step {
  /** The seed for random decisions until the next step. */
  readonly id: number
  /** How long to wait after the previous step, in milliseconds. */
  readonly wait: number
  readonly deed: Deed
}

export interface Story {
  readonly seed: string
  readonly people: number
  readonly steps: ReadonlyArray<Step>
}

const manner = (random: Random): Manner => {
  if (random.chance(0.55)) return { kind: "well" }
  switch (random.below(8)) {
    case 0:
      return { kind: "late", millis: random.pick([50, 1_000, 8_000, 13_000, 40_000, 200_000]) }
    case 1:
      return { kind: "paced", millis: random.pick([5, 170, 1_900]) }
    case 2:
      return { kind: "cut" }
    case 3:
    case 4:
      return { kind: "refuses", status: random.pick([400, 429, 500, 503]), answers: random.chance(0.3) }
    case 5:
      return { kind: "absurd" }
    case 6:
      return { kind: "stops" }
    default:
      return { kind: "uncounted" }
  }
}

/**
 * Selects a vendor's behavior in calls other than chat. Omits faults with a response body, because the simulation has no bodies for those calls.
 */
const plainManner = (random: Random): Manner => {
  const found = manner(random)
  if (found.kind === "refuses") return { kind: "refuses", status: found.status }
  return found.kind === "absurd" || found.kind === "uncounted" || found.kind === "stops" ? { kind: "well" } : found
}

const leaving = (random: Random, often = 0.25): Leaving | undefined => {
  if (!random.chance(often)) return undefined
  switch (random.below(3)) {
    case 0:
      return { sent: random.below(400) }
    case 1:
      return { received: random.below(900) }
    default:
      return { after: random.pick([1, 30, 500, 5_000]) }
  }
}

const storageErrors = ["SQLITE_FULL", "SQLITE_IOERR_FSYNC", "SQLITE_BUSY", "SQLITE_IOERR_WRITE"]
const readErrors = ["SQLITE_IOERR_READ", "SQLITE_BUSY", "SQLITE_CANTOPEN"]

const models = ["sandbox-small", "sandbox-large", "sandbox-fraction", "sandbox-failover"] as const

const day = 86_400_000

/** Creates a typical model request. By default, the vendor serves it correctly and the client stays connected. */
const chat = (random: Random, who: number, more: Partial<Extract<Deed, { readonly do: "chat" }>> = {}): Deed => ({
  do: "chat",
  who,
  model: random.pick(models),
  stream: random.chance(0.5),
  limit: 1 + random.below(60),
  manner: { kind: "well" },
  leaves: undefined,
  keyed: false,
  limited: false,
  length: 0,
  ...more
})

const spoken = (random: Random): Pick<Extract<Deed, { readonly do: "chat" }>, "protocol" | "manner"> => {
  if (random.chance(0.6)) return { manner: manner(random) }
  const protocol = random.pick(["text", "messages", "responses"] as const)
  const plain = plainManner(random)
  const isLong = protocol === "responses" && plain.kind === "well" && random.chance(0.1)
  return { protocol, manner: isLong ? { kind: "long" } : plain }
}

const limitFor = (random: Random): LimitOf => {
  const one = (): LimitOf =>
    random.pick<() => LimitOf>([
      () => ({ mills: random.below(8) }),
      () => ({ mills: 1 + random.below(8) }),
      () => ({ tokens: 100 + random.below(2_000) }),
      () => ({ requests: random.below(6) }),
      () => ({ concurrent: 1 + random.below(3) })
    ])()
  return random.chance(0.4) ? { ...one(), ...one() } : one()
}

const periods = ["minute", "hour", "day", "week", "month", "total", "total"] as const

const budget = (random: Random, who: number, more: Partial<Extract<Deed, { readonly do: "budget" }>> = {}): Deed => ({
  do: "budget",
  who,
  on: random.chance(0.3) ? "tenant" : "key",
  period: random.pick(periods),
  limit: limitFor(random),
  mode: random.chance(0.2) ? "notify" : "refuse",
  ...more
})

const run = (random: Random, who: number, more: Partial<Extract<Deed, { readonly do: "run" }>> = {}): Deed => ({
  do: "run",
  who,
  under: random.chance(0.5) ? "key" : -1 - random.below(2),
  limit: limitFor(random),
  seconds: random.pick([1, 60, 3_600]),
  wide: random.chance(0.2),
  ...more
})

const disk = (random: Random): Deed => {
  const moment = random.pick(["begin", "statement", "commit", "commit", "after_commit"] as const)
  // A commit can succeed even though the disk reports a failure.
  const error = { error: moment === "after_commit" ? "SQLITE_IOERR_FSYNC" : random.pick(storageErrors) }
  return {
    do: "disk",
    moment,
    after: random.below(moment === "statement" ? 30 : 4),
    mishap: random.pick([error, error, "crash", "thread"])
  }
}

const deeds: ReadonlyArray<readonly [weight: number, make: (random: Random, people: number) => Deed]> = [
  [
    26,
    (random, people) =>
      chat(random, random.below(people), {
        limit: random.chance(0.7) ? 1 + random.below(60) : undefined,
        ...spoken(random),
        leaves: leaving(random),
        keyed: random.chance(0.3),
        limited: random.chance(0.2)
      })
  ],
  [
    6,
    (random, people) =>
      chat(random, random.below(people), {
        ...spoken(random),
        leaves: leaving(random),
        keyed: random.chance(0.2),
        under: random.chance(0.5) ? "key" : random.below(1_000)
      })
  ],
  [3, (random, people) => budget(random, random.below(people))],
  [
    2,
    (random) => ({
      do: "rebudget",
      which: random.below(1_000),
      limit: limitFor(random),
      mode: random.chance(0.2) ? "notify" : "refuse"
    })
  ],
  [
    1,
    (random) => ({
      do: "raise",
      which: random.below(1_000),
      mills: 1 + random.below(5),
      millis: random.pick([500, 60_000, day])
    })
  ],
  [1, (random) => ({ do: "drop", which: random.below(1_000) })],
  [3, (random, people) => run(random, random.below(people))],
  [1, (random) => ({ do: "end", which: random.below(1_000) })],
  [2, (random) => ({ do: "check", which: random.below(1_000) })],
  [6, (random) => ({ do: "again", which: random.below(1_000) })],
  [
    5,
    (random, people) => ({
      do: "search",
      who: random.below(people),
      manner: plainManner(random),
      leaves: leaving(random)
    })
  ],
  [
    6,
    (random, people) => ({
      do: "use",
      who: random.below(people),
      tool: random.pick(tools),
      manner: plainManner(random),
      leaves: leaving(random)
    })
  ],
  [
    6,
    (random, people) => ({
      do: "media",
      who: random.below(people),
      seconds: 1 + random.below(10),
      manner: plainManner(random),
      leaves: leaving(random)
    })
  ],
  [4, (random) => ({ do: "look", which: random.below(1_000), cancel: random.chance(0.2) })],
  [
    8,
    (random, people) => ({
      do: "send",
      who: random.below(people),
      to: random.chance(0.25) ? "stranger" : random.below(people),
      cents: random.chance(0.2) ? random.pick(["giftable", "everything"] as const) : 1 + random.below(40),
      twice: random.chance(0.3),
      leaves: leaving(random, 0.1)
    })
  ],
  [
    9,
    (random) => ({
      do: "answer",
      which: random.below(1_000),
      how: random.pick(["accept", "accept", "decline", "revoke", "race"])
    })
  ],
  [
    5,
    (random, people) => ({
      do: "buy",
      who: random.below(people),
      credits: 5 + random.below(20),
      manner: plainManner(random)
    })
  ],
  [
    4,
    (random, people) => ({
      do: "reload",
      who: random.below(people),
      card: random.chance(0.8) ? "pm_card_visa" : "pm_card_declined",
      threshold: random.pick([1, 5, 20]),
      manner: plainManner(random),
      at: random.pick(["settings", "charge"])
    })
  ],
  [
    4,
    (random) => ({
      do: "payment",
      which: random.below(1_000),
      what: random.pick(["refund", "refund_fail", "dispute", "win"]),
      cents: 100 + random.below(900)
    })
  ],
  [12, (random) => ({ do: "deliver", which: random.below(1_000), leaves: leaving(random, 0.1) })],
  [3, (random, people) => ({ do: "pin", who: random.below(people), team: random.chance(0.7) })],
  [1, (random, people) => ({ do: "remove", who: random.below(people) })],
  [2, (random, people) => ({ do: "limit", who: random.below(people), mills: 1 + random.below(8) })],
  [2, (random) => ({ do: "join", who: random.below(1_000) })],
  [2, (random) => ({ do: "mail", manner: plainManner(random) })],
  [2, () => ({ do: "crash" })],
  [1, () => ({ do: "stop" })],
  [9, disk],
  [
    3,
    (random) => ({
      do: "full",
      millis: random.pick([100, 3_000, 12_000, 30_000]),
      moment: random.pick(["begin", "statement", "commit"]),
      error: random.pick(storageErrors)
    })
  ],
  [
    3,
    (random) => ({
      do: "read",
      after: random.below(20),
      millis: random.pick([0, 0, 500, 12_000]),
      error: random.pick(readErrors)
    })
  ],
  [2, (random) => ({ do: "hang", millis: random.pick([20, 2_000, 9_000, 14_000]), way: random.pick(["to", "from"]) })],
  [1, () => ({ do: "thread" })],
  [2, () => ({ do: "lapse" })],
  [
    2,
    (random) => ({
      do: "clock",
      millis: random.pick([-3_600_000, -1_000, 1_000, 660_000, 3_700_000, 90_000_000, 31 * day])
    })
  ]
]

/** Selects the weights for one story. Some kinds of steps become frequent and others absent, so that rare combinations occur. */
const weightsOf = (random: Random): ReadonlyArray<number> =>
  deeds.map(([weight], place) => weight * (place === 0 ? 1 : random.pick([0, 1, 1, 3])))

const deed = (random: Random, people: number, weights: ReadonlyArray<number>): Deed => {
  let left = random.next() * weights.reduce((sum, weight) => sum + weight, 0)
  for (const [place, weight] of weights.entries()) {
    left -= weight
    if (left < 0) return deeds[place]![1](random, people)
  }
  return deeds[0]![1](random, people)
}

// ---- plots --------------------------------------------------------------------------------------------------------------

/** Related steps, each with its wait after the previous step. Other steps may happen in between. */
type Plot = ReadonlyArray<readonly [wait: number, deed: Deed]>

const delivered = (which: number): Deed => ({ do: "deliver", which, leaves: undefined })

/** Selects a fault of the computer that happens during an operation. */
const mishap = (random: Random): Deed =>
  random.pick<Deed>([{ do: "crash" }, { do: "stop" }, { do: "thread" }, disk(random)])

const plots: ReadonlyArray<(random: Random, who: number, people: number) => Plot> = [
  // Several concurrent requests with one key exceed its spending limit.
  (random, who) =>
    Array.from({ length: 3 }, () => [
      random.below(3),
      chat(random, who, {
        model: "sandbox-large",
        limit: 60,
        manner: { kind: "late", millis: 1_000 },
        limited: true,
        length: 250
      })
    ]),
  // A user sends requests until the credit is exhausted. (The second user has little credit.)
  (random) =>
    Array.from({ length: 7 }, () => [
      random.pick([0, 800]),
      chat(random, 1, { model: "sandbox-large", limit: 1 + random.below(9), length: 5_000 })
    ]),
  // Concurrent requests use one key while its limit changes.
  (random, who) =>
    Array.from({ length: 5 }, (_, place): Plot[number] => [
      random.pick([0, 3, 400]),
      place === 2
        ? { do: "limit", who, mills: random.pick([1, 2, 8]) }
        : chat(random, who, {
            model: "sandbox-large",
            limit: 60,
            manner: { kind: "late", millis: 1_000 },
            limited: true,
            length: 150
          })
    ]),
  // Concurrent calls count against a budget that is changed or raised in the meantime.
  (random, who) => [
    [0, budget(random, who, { on: "key", mode: "refuse", limit: { ...limitFor(random), mills: 2 + random.below(6) } })],
    ...Array.from({ length: 5 }, (_, place): Plot[number] => [
      place === 0 ? 500 : random.pick([0, 3, 400]),
      place === 3
        ? random.pick<Deed>([
            { do: "rebudget", which: -1, limit: limitFor(random), mode: "refuse" },
            { do: "raise", which: -1, mills: 1 + random.below(4), millis: random.pick([500, day]) },
            { do: "drop", which: -1 },
            { do: "check", which: -1 }
          ])
        : budgeted(random, who, "key")
    ]),
    [3_000, { do: "check", which: -1 }]
  ],
  // Calls are still open when their budget's period ends.
  (random, who) => [
    [
      0,
      budget(random, who, {
        on: "key",
        period: "minute",
        mode: "refuse",
        limit: random.pick<LimitOf>([{ mills: 2 + random.below(4) }, { concurrent: 2 }, { tokens: 900 }])
      })
    ],
    [500, budgeted(random, who, "key", 40_000)],
    [random.below(30_000), budgeted(random, who, "key", 40_000)],
    ...Array.from({ length: 3 }, (): Plot[number] => [random.below(20_000), budgeted(random, who, "key")])
  ],
  // A run creates another run, and calls are open when one of the runs ends.
  (random, who) => {
    const mills = 3 + random.below(8)
    return [
      [0, run(random, who, { under: "key", limit: { mills }, seconds: 3_600 })],
      [500, run(random, who, { under: -1, limit: limitFor(random), seconds: 3_600, wide: random.chance(0.5) })],
      [500, budgeted(random, who, -1)],
      [random.pick([0, 3, 400]), budgeted(random, who, random.pick(["key", -1, -2]))],
      [random.pick([0, 3, 400]), budgeted(random, who, random.pick([-1, -2]))],
      [random.pick([0, 600]), random.pick<Deed>([{ do: "end", which: -2 }, { do: "end", which: -1 }, mishap(random)])],
      [random.pick([0, 600]), budgeted(random, who, random.pick([-1, -2]))],
      [2_000, { do: "check", which: -1 }]
    ]
  },
  // An exhausted budget only notifies.
  (random, who) => [
    [
      0,
      budget(random, who, {
        mode: "notify",
        limit: random.pick<LimitOf>([{ mills: 0 }, { requests: 1 }, { tokens: 100 }])
      })
    ],
    [500, budgeted(random, who, "key")],
    [random.pick([3, 1_500]), budgeted(random, who, "key")],
    [random.pick([3, 1_500]), budgeted(random, who, random.pick(["key", -1]))]
  ],
  // A team pays for a member's calls, then removes the member.
  (random, who) => [
    [0, { do: "pin", who, team: true }],
    [random.pick([0, 500]), chat(random, who, { manner: { kind: "late", millis: 1_000 } })],
    [random.pick([0, 300]), { do: "remove", who }],
    [random.pick([0, 500]), chat(random, who)],
    [2_000, chat(random, who)]
  ],
  // A call is released while its vendor is still working on it, and its credit is spent or sent.
  (random, who) => [
    [0, chat(random, who, { manner: { kind: "late", millis: random.pick([1_000, 8_000]) } })],
    [random.pick([300, 900]), { do: "lapse" }],
    [
      random.pick([0, 30, 300]),
      random.pick<Deed>([chat(random, who), sent(who, random, random.pick([2, "giftable"] as const))])
    ]
  ],
  // A new user signs in with two browsers while the disk is slow.
  (random) => [
    [0, { do: "hang", millis: random.pick([20, 2_000]), way: random.pick(["to", "to", "from"]) }],
    [0, { do: "join", who: 0 }]
  ],
  // The processor declines a charge, then the computer fails.
  (random, who) => [
    [
      0,
      {
        do: "reload",
        who,
        card: "pm_card_visa",
        threshold: 1,
        manner: { kind: "refuses", status: random.pick([500, 503]) },
        at: "charge"
      }
    ],
    [random.pick([500, 2_500]), mishap(random)]
  ],
  // A user tries to send credit that is reserved for a video.
  (random, who) => [
    [0, { do: "media", who, seconds: 10, manner: { kind: "well" }, leaves: undefined }],
    [random.pick([0, 30, 300]), sent(who, random, random.pick([60, 60, "giftable", "everything"] as const))]
  ],
  // Two users act on the same transfer concurrently, while another transfer is pending.
  (random, who, people) => [
    [0, sent(who, random, 6, (who + 1) % people)],
    [500, sent(who, random, 1 + random.below(5), (who + 1) % people)],
    [1_000, { do: "answer", which: -1, how: random.pick(["race", "race", "accept", "revoke"]) }],
    [random.pick([0, 5, 500]), { do: "answer", which: -1, how: random.pick(["race", "accept", "revoke", "decline"]) }]
  ],
  // Events follow a payment and are delivered in any order. In some stories, its credit has been spent by then.
  (random, who) => {
    const happens = Array.from({ length: 1 + random.below(3) }, (_, place): Plot[number] => [
      random.pick([300, 2_000]),
      {
        do: "payment",
        which: -1,
        what:
          place === 0 ? random.pick(["refund", "dispute"]) : random.pick(["refund", "refund_fail", "dispute", "win"]),
        cents: 100 + random.below(400)
      }
    ])
    const told = Array.from({ length: 4 }, (): Plot[number] => [random.below(400), delivered(-1 - random.below(6))])
    const bought: Plot = [[0, { do: "buy", who, credits: 5 + random.below(4), manner: { kind: "well" } }]]
    if (random.chance(0.5)) return [...bought, ...happens, ...told]
    const early: Plot = [
      [900, delivered(-1)],
      [0, delivered(-2)]
    ]
    return [...bought, ...early, [900, sent(who, random, "giftable")], ...happens, ...told]
  },
  // One event is delivered twice concurrently.
  (random, who) => [
    [0, { do: "buy", who, credits: 5, manner: { kind: "well" } }],
    [900, delivered(-1)],
    [0, delivered(random.pick([-1, -2]))],
    [0, delivered(-1)]
  ],
  // A tenant with auto-reload spends its balance while the processor or the computer fails.
  (random, who) => {
    const fails = random.pick<Manner>([{ kind: "late", millis: 8_000 }, { kind: "cut" }, { kind: "well" }])
    return [
      [0, { do: "reload", who, card: "pm_card_visa", threshold: 1, manner: fails }],
      [random.pick([500, 3_000]), random.chance(0.5) ? mishap(random) : { do: "pin", who, team: false }],
      [3_000, delivered(-1)],
      [1_000, sent(who, random, "giftable")],
      [random.pick([1_000, 700_000]), { do: "reload", who, card: "pm_card_visa", threshold: 1, manner: fails }],
      [500, sent(who, random, "giftable")]
    ]
  },
  // The computer fails during an operation.
  (random, who) => [
    [
      0,
      random.pick<Deed>([
        chat(random, who, { keyed: true, manner: { kind: "late", millis: 8_000 } }),
        chat(random, who, { stream: true, length: 30, manner: { kind: "paced", millis: 170 } }),
        { do: "media", who, seconds: 2, manner: { kind: "late", millis: 8_000 }, leaves: undefined },
        { do: "media", who, seconds: 2, manner: { kind: "well" }, leaves: undefined }
      ])
    ],
    [random.pick([5, 300, 1_500]), mishap(random)],
    [random.pick([10, 2_500]), { do: "again", which: -1 }],
    [2_000, { do: "look", which: -1, cancel: false }]
  ],
  // The computer or the mail server fails while an email is being sent.
  (random, who) => [
    [0, { do: "mail", manner: random.pick<Manner>([{ kind: "late", millis: 8_000 }, { kind: "cut" }]) }],
    [0, sent(who, random, 2, "stranger")],
    [random.pick([100, 1_500]), mishap(random)]
  ],
  // A commit takes longer than any wait in the service.
  (random, who) => [
    [0, { do: "hang", millis: 14_000, way: random.pick(["to", "from"]) }],
    [0, random.pick([chat(random, who), sent(who, random, 2, "stranger"), delivered(-1)])],
    [0, chat(random, who, { keyed: true })],
    [random.pick([1_000, 16_000]), chat(random, who)]
  ],
  // A client that may have disconnected repeats a call with its key.
  (random, who) => [
    [0, chat(random, who, { keyed: true, manner: manner(random), leaves: leaving(random, 0.6) })],
    [random.pick([0, 5, 1_000, 12_000]), { do: "again", which: -1 }],
    [random.pick([0, 1_000]), { do: "again", which: -1 }]
  ],
  // The disk fails at the moment of a write.
  (random, who) => [
    [0, disk(random)],
    [
      0,
      random.pick([
        chat(random, who),
        sent(who, random, 2),
        delivered(-1),
        { do: "answer", which: -1, how: "accept" },
        { do: "buy", who, credits: 5, manner: { kind: "well" } }
      ] as ReadonlyArray<Deed>)
    ],
    [0, chat(random, who)],
    [20_000, chat(random, who)]
  ],
  // Transfers expire while the disk cannot be read or written.
  (random, who) => [
    [0, sent(who, random, 2, "stranger")],
    [
      800,
      random.chance(0.5)
        ? { do: "read", after: 0, millis: 12_000, error: random.pick(readErrors) }
        : { do: "full", millis: 12_000, moment: "commit", error: random.pick(storageErrors) }
    ],
    [0, { do: "clock", millis: 31 * day }],
    [1_000, sent(who, random, 2, "stranger")]
  ]
]

/** Creates a call that counts against a budget or a run. Its vendor responds after `millis`. */
const budgeted = (random: Random, who: number, under: "key" | number, millis = 1_000): Deed =>
  chat(random, who, {
    model: "sandbox-large",
    limit: 60,
    manner: { kind: "late", millis },
    under,
    length: random.below(150)
  })

const sent = (
  who: number,
  random: Random,
  cents: Extract<Deed, { readonly do: "send" }>["cents"],
  to: number | "stranger" = random.chance(0.3) ? "stranger" : who + 1
): Deed => ({ do: "send", who, to, cents, twice: random.chance(0.2), leaves: undefined })

/** Selects the wait before a step, in milliseconds. Half of the waits are shorter than 5 ms. */
const wait = (random: Random): number =>
  random.chance(0.5) ? random.below(5) : random.chance(0.85) ? random.below(2_000) : random.below(60_000)

export const make = (seed: string, count: number): Story => {
  const generator = random(`story ${seed}`)
  const people = 2 + generator.below(4)
  const weights = weightsOf(generator)
  const found: Array<Omit<Step, "id">> = []
  const any = () => ({ wait: wait(generator), deed: deed(generator, people, weights) })
  while (found.length < count) {
    if (!generator.chance(0.3)) found.push(any())
    else
      for (const [wait, deed] of generator.pick(plots)(generator, generator.below(people), people)) {
        found.push({ wait, deed })
        if (generator.chance(0.2)) found.push({ ...any(), wait: generator.below(5) })
      }
  }
  return { seed, people, steps: found.slice(0, count).map((step, i) => ({ id: i + 1, ...step })) }
}

// ---- as sentences -------------------------------------------------------------------------------------------------------

const names = ["Ada", "Bob", "Eve", "Kim", "Lea", "Max"]
export const nameOf = (who: number): string => names[who % names.length]!

const seconds = (millis: number): string => (millis < 1_000 ? `${millis} ms` : `${millis / 1_000} s`)

const mannerText = (vendor: string, manner: Manner): string => {
  switch (manner.kind) {
    case "well":
      return ""
    case "late":
      return `; ${vendor} responds ${seconds(manner.millis)} late`
    case "paced":
      return `; ${vendor} pauses ${seconds(manner.millis)} between two chunks`
    case "cut":
      return `; ${vendor} breaks the connection`
    case "stops":
      return `; ${vendor} ends its response midway`
    case "refuses":
      return `; ${vendor} responds with ${manner.status}${manner.answers === true ? " and a body that looks like a response" : ""}`
    case "absurd":
      return `; ${vendor} reports absurd figures`
    case "uncounted":
      return `; ${vendor} reports no figures`
    case "long":
      return `; ${vendor} ends a stream with a long event`
  }
}

const leavingText = (leaves: Leaving | undefined): string => {
  if (leaves === undefined) return ""
  if (leaves.sent !== undefined) return `, and disconnects after sending ${leaves.sent} bytes`
  if (leaves.received !== undefined) return `, and disconnects after receiving ${leaves.received} bytes`
  return `, and disconnects after ${seconds(leaves.after ?? 0)}`
}

const amountText = (cents: Extract<Deed, { readonly do: "send" }>["cents"]): string =>
  typeof cents === "number"
    ? `${cents / 100} credits`
    : { giftable: "everything that may be sent", everything: "the entire balance" }[cents]

const underText = (under: "key" | number): string =>
  under === "key" ? "the key for budgets" : under < 0 ? `the key of a late run (${under})` : "the key of a run"

const limitText = ({ concurrent, mills, requests, tokens }: LimitOf): string =>
  [
    ...(mills === undefined ? [] : [`${mills / 1_000} USD`]),
    ...(tokens === undefined ? [] : [`${tokens} tokens`]),
    ...(requests === undefined ? [] : [`${requests} requests`]),
    ...(concurrent === undefined ? [] : [`${concurrent} open calls`])
  ].join(" and ")

const momentTexts = {
  begin: "begins",
  statement: "runs a statement of",
  commit: "commits",
  after_commit: "has committed"
}

export const sentence = (deed: Deed): string => {
  switch (deed.do) {
    case "chat":
      return (
        `${nameOf(deed.who)} calls ${deed.model}${deed.protocol === undefined ? "" : ` over ${deed.protocol}`}` +
        (deed.stream ? " for a stream" : "") +
        (deed.limit === undefined ? "" : ` with at most ${deed.limit} tokens`) +
        `${deed.keyed ? " with an Idempotency-Key" : ""}${deed.limited ? " with the limited key" : ""}` +
        (deed.under === undefined ? "" : ` with ${underText(deed.under)}`) +
        (deed.length === 0 ? "" : ` and a prompt of about ${deed.length} words`) +
        `${leavingText(deed.leaves)}${mannerText("the vendor", deed.manner)}`
      )
    case "again":
      return "A request with an Idempotency-Key is sent again"
    case "search":
      return `${nameOf(deed.who)} searches${leavingText(deed.leaves)}${mannerText("the vendor", deed.manner)}`
    case "use":
      return `${nameOf(deed.who)} uses ${deed.tool}${leavingText(deed.leaves)}${mannerText("the vendor", deed.manner)}`
    case "media":
      return `${nameOf(deed.who)} orders a video of ${deed.seconds} s${leavingText(deed.leaves)}${mannerText("the vendor", deed.manner)}`
    case "look":
      return deed.cancel ? "Someone cancels a video" : "Someone polls a video"
    case "send":
      return (
        `${nameOf(deed.who)} sends ${amountText(deed.cents)} to ${deed.to === "stranger" ? "a stranger" : nameOf(deed.to)}` +
        `${deed.twice ? ", twice with one key" : ""}${leavingText(deed.leaves)}`
      )
    case "answer":
      return `Someone ${{ accept: "accepts", decline: "declines", revoke: "revokes", race: "accepts and revokes concurrently" }[deed.how]}`
    case "buy":
      return `${nameOf(deed.who)} buys ${deed.credits} credits${mannerText("the processor", deed.manner)}`
    case "reload":
      return (
        `${nameOf(deed.who)} sets auto-reload below ${deed.threshold} credits with ${deed.card}` +
        mannerText("the processor", deed.manner) +
        (deed.manner.kind !== "well" && deed.at === "charge" ? " when it is charged" : "")
      )
    case "payment":
      return `A payment changes: ${deed.what} of ${deed.cents / 100} USD`
    case "deliver":
      return `An event of the processor is delivered${leavingText(deed.leaves)}`
    case "pin":
      return `${nameOf(deed.who)} chooses ${deed.team ? "the team" : "the automatic order"} as payer`
    case "remove":
      return `${nameOf(deed.who)} is removed from the team`
    case "limit":
      return `The limited key of ${nameOf(deed.who)} may spend ${deed.mills / 1_000} USD from now on`
    case "budget":
      return (
        `${nameOf(deed.who)} creates a budget of ${limitText(deed.limit)} for ${deed.on === "key" ? "the key for budgets" : "all calls"}` +
        `, by ${deed.period}${deed.mode === "notify" ? " that only notifies" : ""}`
      )
    case "rebudget":
      return `A budget changes to ${limitText(deed.limit)}${deed.mode === "notify" ? " and only notifies" : ""}`
    case "raise":
      return `A budget is raised by ${deed.mills / 1_000} USD for ${seconds(deed.millis)}`
    case "drop":
      return "A budget is deleted"
    case "run":
      return (
        `${nameOf(deed.who)} creates a run with ${underText(deed.under)}, of ${limitText(deed.limit)} and ${deed.seconds} s` +
        (deed.wide ? ", wider than the run that creates it" : "")
      )
    case "end":
      return "A run is ended"
    case "check":
      return "Someone reads a budget or run"
    case "join":
      return `A new person signs in`
    case "mail":
      return `The next email${mannerText("the mail server", deed.manner)}`
    case "crash":
      return "The power fails"
    case "stop":
      return "The service shuts down and starts again"
    case "disk": {
      const what =
        deed.mishap === "crash" ? "the power fails" : deed.mishap === "thread" ? "its thread ends" : deed.mishap.error
      return `When the writer ${momentTexts[deed.moment]} a transaction, ${deed.after} of them later: ${what}`
    }
    case "full":
      return `For ${seconds(deed.millis)}, whenever the writer ${momentTexts[deed.moment]} a transaction: ${deed.error}`
    case "read":
      return deed.millis === 0
        ? `A read fails, ${deed.after} of them later: ${deed.error}`
        : `For ${seconds(deed.millis)} every read fails: ${deed.error}`
    case "hang":
      return deed.way === "to"
        ? `The disk hangs for ${seconds(deed.millis)}`
        : `Commits complete, but are acknowledged ${seconds(deed.millis)} late`
    case "thread":
      return "The writer's thread ends"
    case "lapse":
      return "The lease lapses: open calls are released"
    case "clock":
      return `The clock jumps ${deed.millis < 0 ? "back" : "forward"} by ${seconds(Math.abs(deed.millis))}`
  }
}

export const tell = ({ people, seed, steps }: Story): string =>
  [
    `Seed ${seed}, ${people} people:`,
    ...steps.map(
      ({ deed, id, wait }) =>
        `  ${String(id).padStart(4)}. ${wait === 0 ? "" : `${seconds(wait)} later: `}${sentence(deed)}.`
    )
  ].join("\n")
