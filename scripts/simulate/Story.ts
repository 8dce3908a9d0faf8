/**
 * A story: who does what when, and what goes wrong meanwhile. It is data, made from a seed; a part of its steps is a story too, which is how
 * a failing one is made shorter.
 */
import { random } from "./machine/Random.ts"
import type { Random } from "./machine/Random.ts"
import type { StorageFault } from "./machine/Storage.ts"

/** How a vendor treats a call: as it should, or so. */
export type Manner =
  | { readonly kind: "well" }
  | { readonly kind: "late" | "paced"; readonly millis: number }
  | { readonly kind: "cut" }
  | { readonly kind: "refuses"; readonly status: number }
  | { readonly kind: "absurd" }
  | { readonly kind: "uncounted" }

/** How a client leaves: after so many bytes that it sent or received, or after so many milliseconds. */
export interface Leaving {
  readonly sent?: number
  readonly received?: number
  readonly after?: number
}

export type Deed =
  | {
      readonly do: "chat"
      readonly who: number
      readonly model: "sandbox-small" | "sandbox-large" | "sandbox-fraction" | "sandbox-failover"
      readonly stream: boolean
      readonly limit: number | undefined
      readonly manner: Manner
      readonly leaves: Leaving | undefined
      /** Sent with an Idempotency-Key. */
      readonly keyed: boolean
      /** By the key that has a limit. */
      readonly limited: boolean
    }
  /** Asks again what was asked with an Idempotency-Key. */
  | { readonly do: "again"; readonly which: number }
  | { readonly do: "search"; readonly who: number; readonly manner: Manner; readonly leaves: Leaving | undefined }
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
      readonly cents: number
      readonly twice: boolean
    }
  | { readonly do: "answer"; readonly which: number; readonly how: "accept" | "decline" | "revoke" | "race" }
  | { readonly do: "buy"; readonly who: number; readonly credits: number; readonly manner: Manner }
  | {
      readonly do: "reload"
      readonly who: number
      readonly card: "pm_card_visa" | "pm_card_declined"
      readonly threshold: number
      readonly manner: Manner
    }
  | {
      readonly do: "payment"
      readonly which: number
      readonly what: "refund" | "refund_fail" | "dispute" | "win"
      readonly cents: number
    }
  /** The processor's event of that number is delivered, perhaps not for the first time. */
  | { readonly do: "deliver"; readonly which: number; readonly leaves: Leaving | undefined }
  | { readonly do: "pin"; readonly who: number; readonly team: boolean }
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
  | { readonly do: "hang"; readonly millis: number; readonly way: "to" | "from" }
  | { readonly do: "thread" }
  | { readonly do: "clock"; readonly millis: number }

export interface Step {
  /** What chance is drawn from while it is the latest step. */
  readonly id: number
  /** Milliseconds after the step before. */
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
  switch (random.below(7)) {
    case 0:
      return { kind: "late", millis: random.pick([50, 1_000, 8_000, 13_000, 40_000]) }
    case 1:
      return { kind: "paced", millis: random.pick([5, 170, 1_900]) }
    case 2:
      return { kind: "cut" }
    case 3:
    case 4:
      return { kind: "refuses", status: random.pick([400, 429, 500, 503]) }
    case 5:
      return { kind: "absurd" }
    default:
      return { kind: "uncounted" }
  }
}

/** A vendor that is no model has no figures that could be absurd. */
const plainManner = (random: Random): Manner => {
  const found = manner(random)
  return found.kind === "absurd" || found.kind === "uncounted" ? { kind: "well" } : found
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

/** The deeds, each with how often it is drawn. */
const deeds: ReadonlyArray<readonly [weight: number, make: (random: Random, people: number) => Deed]> = [
  [
    30,
    (random, people) => ({
      do: "chat",
      who: random.below(people),
      model: random.pick(["sandbox-small", "sandbox-large", "sandbox-fraction", "sandbox-failover"]),
      stream: random.chance(0.5),
      limit: random.chance(0.7) ? 1 + random.below(60) : undefined,
      manner: manner(random),
      leaves: leaving(random),
      keyed: random.chance(0.3),
      limited: random.chance(0.2)
    })
  ],
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
      cents: 1 + random.below(random.chance(0.2) ? 2_000 : 40),
      twice: random.chance(0.3)
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
      threshold: 5 + random.below(20),
      manner: plainManner(random)
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
  [2, (random) => ({ do: "join", who: random.below(1_000) })],
  [2, (random) => ({ do: "mail", manner: plainManner(random) })],
  [2, () => ({ do: "crash" })],
  [1, () => ({ do: "stop" })],
  [
    7,
    (random) => {
      const moment = random.pick(["begin", "statement", "commit", "after_commit"] as const)
      const error = { error: random.pick(storageErrors) }
      return {
        do: "disk",
        moment,
        after: random.below(moment === "statement" ? 30 : 6),
        // Behind a commit there is nothing left to fail but the process or the thread.
        mishap:
          moment === "after_commit" ? random.pick(["crash", "thread"]) : random.pick([error, error, "crash", "thread"])
      }
    }
  ],
  [
    2,
    (random) => ({
      do: "full",
      millis: random.pick([100, 3_000, 12_000, 30_000]),
      moment: random.pick(["begin", "statement", "commit"]),
      error: random.pick(storageErrors)
    })
  ],
  [2, (random) => ({ do: "hang", millis: random.pick([20, 2_000, 9_000, 14_000]), way: random.pick(["to", "from"]) })],
  [1, () => ({ do: "thread" })],
  [2, (random) => ({ do: "clock", millis: random.pick([-3_600_000, -1_000, 1_000, 660_000, 3_700_000, 90_000_000]) })]
]

const weights = deeds.reduce((sum, [weight]) => sum + weight, 0)

const deed = (random: Random, people: number): Deed => {
  let left = random.below(weights)
  for (const [weight, make] of deeds) {
    left -= weight
    if (left < 0) return make(random, people)
  }
  throw new Error("no deed was drawn")
}

/** How much goes on at once: most steps follow each other at once. */
const wait = (random: Random): number =>
  random.chance(0.5) ? random.below(5) : random.chance(0.85) ? random.below(2_000) : random.below(60_000)

export const make = (seed: string, count: number): Story => {
  const chance = random(`story ${seed}`)
  const people = 2 + chance.below(4)
  return {
    seed,
    people,
    steps: Array.from({ length: count }, (_, i) => ({ id: i + 1, wait: wait(chance), deed: deed(chance, people) }))
  }
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
      return `; ${vendor} answers ${seconds(manner.millis)} late`
    case "paced":
      return `; ${vendor} pauses ${seconds(manner.millis)} between two pieces`
    case "cut":
      return `; ${vendor} breaks the connection off`
    case "refuses":
      return `; ${vendor} answers ${manner.status}`
    case "absurd":
      return `; ${vendor} reports absurd figures`
    case "uncounted":
      return `; ${vendor} reports no figures`
  }
}

const leavingText = (leaves: Leaving | undefined): string => {
  if (leaves === undefined) return ""
  if (leaves.sent !== undefined) return `, and leaves after sending ${leaves.sent} bytes`
  if (leaves.received !== undefined) return `, and leaves after receiving ${leaves.received} bytes`
  return `, and leaves after ${seconds(leaves.after ?? 0)}`
}

const momentTexts = {
  begin: "begins",
  statement: "makes a statement of",
  commit: "commits",
  after_commit: "has committed"
}

export const sentence = (deed: Deed): string => {
  switch (deed.do) {
    case "chat":
      return (
        `${nameOf(deed.who)} asks ${deed.model}${deed.stream ? " for a stream" : ""}` +
        (deed.limit === undefined ? "" : ` of at most ${deed.limit} tokens`) +
        `${deed.keyed ? " with an Idempotency-Key" : ""}${deed.limited ? " by the key with a limit" : ""}` +
        `${leavingText(deed.leaves)}${mannerText("the vendor", deed.manner)}`
      )
    case "again":
      return "A request with an Idempotency-Key is sent again"
    case "search":
      return `${nameOf(deed.who)} searches${leavingText(deed.leaves)}${mannerText("the vendor", deed.manner)}`
    case "media":
      return `${nameOf(deed.who)} orders a video of ${deed.seconds} s${leavingText(deed.leaves)}${mannerText("the vendor", deed.manner)}`
    case "look":
      return deed.cancel ? "Somebody cancels a video" : "Somebody asks for a video"
    case "send":
      return (
        `${nameOf(deed.who)} sends ${deed.cents / 100} credits to ${deed.to === "stranger" ? "a stranger" : nameOf(deed.to)}` +
        (deed.twice ? ", twice with one key" : "")
      )
    case "answer":
      return `A transfer is to be ${{ accept: "accepted", decline: "declined", revoke: "revoked", race: "accepted and revoked at once" }[deed.how]}`
    case "buy":
      return `${nameOf(deed.who)} buys ${deed.credits} credits${mannerText("the processor", deed.manner)}`
    case "reload":
      return (
        `${nameOf(deed.who)} has auto-reload below ${deed.threshold} credits by ${deed.card}` +
        mannerText("the processor", deed.manner)
      )
    case "payment":
      return `What happens to a payment: ${deed.what}, of ${deed.cents / 100} USD`
    case "deliver":
      return `An event of the processor is delivered${leavingText(deed.leaves)}`
    case "pin":
      return `${nameOf(deed.who)} wants ${deed.team ? "the team" : "nobody in particular"} to pay`
    case "join":
      return `Somebody new signs in`
    case "mail":
      return `The next letter${mannerText("the mail server", deed.manner)}`
    case "crash":
      return "The power fails"
    case "stop":
      return "The service is stopped in order, and started again"
    case "disk": {
      const what =
        deed.mishap === "crash" ? "the power fails" : deed.mishap === "thread" ? "its thread ends" : deed.mishap.error
      return `When the writer ${momentTexts[deed.moment]} a transaction, ${deed.after} of them later: ${what}`
    }
    case "full":
      return `For ${seconds(deed.millis)}, whenever the writer ${momentTexts[deed.moment]} a transaction: ${deed.error}`
    case "hang":
      return deed.way === "to"
        ? `The disk hangs for ${seconds(deed.millis)}`
        : `Commits are done, and answered ${seconds(deed.millis)} late`
    case "thread":
      return "The writer's thread ends"
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
