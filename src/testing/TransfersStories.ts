/**
 * The property suite for any implementation of transfers. People send credit, accept, decline, revoke, resend and wait, one at a time and
 * concurrently. A wrong implementation fails with the shortest story that shows the error.
 */
import fc from "fast-check"
import { toDecimal } from "../kernel/Money.ts"
import { apply, balanceMax } from "./LedgerModel.ts"
import type { ModelAccount, Notebook as Books } from "./LedgerModel.ts"
import { InvariantBroken } from "./LedgerProperties.ts"
import { amounts as nanos } from "./LedgerStories.ts"
import { tell } from "./Story.ts"
import type { Step } from "./Story.ts"
import { cent, day, dueAt, noTransfers, resendPause } from "./TransfersModel.ts"
import type { TransferRequest, ModelTransfer, TransferOrder, TransfersNotebook } from "./TransfersModel.ts"
import { askedAtOnce, misread, outside } from "./TransfersProperties.ts"
import type { TransfersClock, TransfersUnderTest } from "./TransfersProperties.ts"

const people = ["ada", "bob", "cyd"] as const
/** `people`, and a person who can receive a transfer before joining. */
const everyone = [...people, "dan"] as const
type Name = (typeof everyone)[number]

const emailOf = (who: string): string => `${who}@example.com`
const nameOf = (email: string): string => email.slice(0, email.indexOf("@"))

/** The state of a story: the notebook, the number of keys generated, and the time in milliseconds. */
export interface TransfersStory {
  now: TransfersNotebook
  keys: number
  time: number
}

export interface TransfersWorld {
  readonly under: TransfersUnderTest
  readonly clock: TransfersClock
}

export type TransfersStep = Step<TransfersStory, TransfersWorld>

// ---- one operation -------------------------------------------------------------------------------------------------------------

/** Draws a request that is possible in this state, with the sentence that describes it. Returns `undefined` if there is none. */
type Draw = (
  story: Readonly<TransfersStory>
) => { readonly asked: TransferRequest; readonly sentence: string } | undefined

const name = fc.constantFrom<Name>(...people)
/** Draws `true` in one case out of twenty. */
const seldom = fc.integer({ min: 1, max: 20 }).map((n) => n === 20)
const which = fc.nat({ max: 2 })

/** Picks a transfer. Index 0 is the newest one, so that stories often choose pending transfers. */
const pick = (transfers: ReadonlyArray<ModelTransfer>, index: number): ModelTransfer | undefined =>
  transfers.at(-1 - (index % Math.max(1, transfers.length)))

const label = ({ transfers }: TransfersNotebook, { view }: ModelTransfer): string =>
  `#${1 + transfers.findIndex((one) => one.view.id === view.id)}`

/** Random amounts in whole cents. Most are small, and some are near the maximum balance. */
const amounts: fc.Arbitrary<bigint> = fc
  .oneof(
    { withCrossShrink: true },
    { weight: 12, arbitrary: fc.bigInt({ min: 1n, max: 5n }) },
    { weight: 4, arbitrary: fc.bigInt({ min: 1n, max: 20n }) },
    { weight: 1, arbitrary: fc.bigInt({ min: balanceMax / cent - 20n, max: balanceMax / cent }) }
  )
  .map((cents) => cents * cent)

/** Random credit from outside. It need not be whole cents. */
const incoming: fc.Arbitrary<bigint> = fc.oneof(
  { withCrossShrink: true },
  { weight: 4, arbitrary: fc.bigInt({ min: 1n, max: 40n }).map((cents) => cents * cent) },
  { weight: 1, arbitrary: amounts },
  { weight: 2, arbitrary: nanos }
)

const edges = {
  giftable: ({ giftable }: ModelAccount) => giftable,
  balance: ({ giftable, granted }: ModelAccount) => giftable + granted
}

/** Computes an amount from the sender's account. */
type Size = (account: ModelAccount) => bigint

const sizes: fc.Arbitrary<Size> = fc.oneof(
  { withCrossShrink: true },
  { weight: 12, arbitrary: amounts.map((amount) => () => amount) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom("giftable" as const, "balance" as const), fc.constantFrom(0n, cent, -cent))
      .map(([edge, more]): Size => {
        // Round down to whole cents, but use at least one cent.
        return (account) => {
          const amount = (edges[edge](account) / cent) * cent + more
          return amount < cent ? cent : amount
        }
      })
  },
  { weight: 1, arbitrary: fc.constantFrom(0n, cent - 1n).map((amount) => () => amount) }
)

/** Creates a transfer, in most cases from a person with giftable credit to another person. */
const creates: fc.Arbitrary<Draw> = fc
  .record({
    anyone: seldom,
    from: which,
    to: fc.oneof(
      { weight: 6, arbitrary: fc.nat({ max: 1 }) },
      { weight: 1, arbitrary: fc.integer({ min: 2, max: 3 }) }
    ),
    size: sizes,
    kind: fc.constantFrom("gift" as const, "transfer" as const),
    wrongly: seldom
  })
  .map(({ anyone, from, kind, size, to, wrongly }) => ({ keys, now }) => {
    const { accounts } = now.books
    const rich = people.filter((who) => accounts.get(emailOf(who))!.giftable >= cent)
    const sender = nth(anyone || rich.length === 0 ? people : rich, from)
    // The candidates are other people, then dan, who may not have joined, then the sender.
    const recipient = nth([...people.filter((who) => who !== sender), "dan", sender], to)
    const amount = size(accounts.get(emailOf(sender))!)
    // Only gifts may have a message.
    const message = (kind === "gift") === wrongly ? null : "thanks"
    const order = { key: keyOf(keys), amount, recipient_email: emailOf(recipient), kind, message }
    return {
      asked: { _tag: "Create", who: emailOf(sender), order },
      sentence:
        `${sender} sends ${toDecimal(amount)} to ${recipient}` +
        ` (${kind}${message === null ? "" : " with a message"})`
    }
  })

const nth = <A>(items: ReadonlyArray<A>, index: number): A => items[index % items.length]!

const keyOf = (keys: number): string => `key-${keys}-0123456789`

/** Reuses a key: the same person sends an equal or a different request, or another person uses the key. */
const createsAgain: fc.Arbitrary<Draw> = fc
  .tuple(which, fc.constantFrom("the same again", "another amount", "another recipient", "by another person"), name)
  .map(([index, how, other]) => ({ now }) => {
    const made = pick(now.transfers, index)
    if (made === undefined) return undefined
    const { amount, kind, message, recipient_email } = made.view
    const same: TransferOrder = { key: made.key, amount, kind, message, recipient_email }
    const order =
      how === "another amount"
        ? { ...same, amount: amount + cent }
        : how === "another recipient"
          ? { ...same, recipient_email: emailOf(other) }
          : same
    const who = how === "by another person" ? emailOf(other) : made.sender
    return {
      asked: { _tag: "Create", who, order },
      sentence:
        `${nameOf(who)} asks with the key of ${label(now, made)} for ` +
        `${toDecimal(order.amount)} to ${nameOf(order.recipient_email)}`
    }
  })

const verbs = {
  Accept: "accepts",
  Decline: "declines",
  Revoke: "revokes",
  Resend: "resends",
  Find: "asks for"
} as const
type Verb = keyof typeof verbs

/** Acts on a transfer, either as a person who may do so or as another person. */
const moving =
  (
    tag: Verb,
    index: number,
    other?: Name,
    among: (story: Readonly<TransfersStory>) => ReadonlyArray<ModelTransfer> = ({ now }) => now.transfers
  ): Draw =>
  (story) => {
    const { now } = story
    const made = pick(among(story), index)
    if (made === undefined) return undefined
    const may = tag === "Accept" || tag === "Decline" ? made.view.recipient_email : made.sender
    const who = other === undefined ? may : emailOf(other)
    // People act only after they have joined.
    if (!now.books.accounts.has(who)) return undefined
    return {
      asked: { _tag: tag, who, id: made.view.id },
      sentence: `${nameOf(who)} ${verbs[tag]} ${label(now, made)}`
    }
  }

const verb = fc.constantFrom<Verb>("Accept", "Accept", "Accept", "Decline", "Revoke", "Resend", "Resend", "Find")

const moves: fc.Arbitrary<Draw> = fc
  .tuple(
    verb,
    which,
    fc.constantFrom<Name | undefined>(undefined, undefined, undefined, undefined, undefined, ...people)
  )
  .map(([tag, index, other]) => moving(tag, index, other))

/** Acts as a person who is neither the sender nor the recipient. */
const strangers: fc.Arbitrary<Draw> = fc.tuple(verb, which).map(([tag, index]) => (story) => {
  const made = pick(story.now.transfers, index)
  const stranger = people.find((who) => made?.sender !== emailOf(who) && made?.view.recipient_email !== emailOf(who))
  return moving(tag, index, stranger)(story)
})

const asksForNone: fc.Arbitrary<Draw> = fc.tuple(verb, name).map(([tag, who]) => () => ({
  asked: { _tag: tag, who: emailOf(who), id: "trf_none" },
  sentence: `${who} ${verbs[tag]} a transfer that does not exist`
}))

const draw: fc.Arbitrary<Draw> = fc.oneof(
  { weight: 8, arbitrary: creates },
  { weight: 10, arbitrary: moves },
  { weight: 4, arbitrary: createsAgain },
  { weight: 3, arbitrary: strangers },
  { weight: 1, arbitrary: asksForNone }
)

// ---- steps ---------------------------------------------------------------------------------------------------------------------

const proposed = (story: Readonly<TransfersStory>, draws: ReadonlyArray<Draw>) => {
  let { keys } = story
  return draws.flatMap((draw) => draw({ ...story, keys: keys++ }) ?? [])
}

const inWords = (sentences: ReadonlyArray<string>): string =>
  sentences.length === 1 ? sentences[0]! : `concurrently: ${sentences.map((one, i) => `(${i + 1}) ${one}`).join("; ")}`

const stepOf = (draws: ReadonlyArray<Draw>): TransfersStep => ({
  sentence: (story) => inWords(proposed(story, draws).map(({ sentence }) => sentence)),
  possible: (story) => proposed(story, draws).length > 0,
  happen: async (story, { clock, under }) => {
    const all = proposed(story, draws).map(({ asked }) => asked)
    story.keys += draws.length
    story.now = await askedAtOnce(story.now, under, clock, all)
  },
  get simpler() {
    return draws.length > 1 ? draws.map((_, i) => stepOf(draws.toSpliced(i, 1))) : []
  }
})

/** Sends the same request several times with the same key. */
const copies: fc.Arbitrary<TransfersStep> = fc.tuple(creates, fc.integer({ min: 2, max: 3 })).map(([create, times]) => {
  // Every copy uses the key of the first.
  const step = (left: number): TransfersStep => ({
    ...stepOf([create]),
    sentence: (story) => `${create(story)!.sentence}${left === 1 ? "" : `, ${left} times concurrently`}`,
    happen: async (story, { clock, under }) => {
      const { asked } = create(story)!
      story.keys++
      story.now = await askedAtOnce(
        story.now,
        under,
        clock,
        Array.from({ length: left }, () => asked)
      )
    },
    simpler: left > 1 ? [step(left - 1)] : []
  })
  return step(times)
})

/** Acts on one transfer several times concurrently. */
const races: fc.Arbitrary<TransfersStep> = fc
  .tuple(which, fc.array(verb, { minLength: 2, maxLength: 4 }))
  .map(([index, tags]) => stepOf(tags.map((tag) => moving(tag, index))))

/** Creates a step from a posting from outside that the notebook allows. */
const fromOutside = (
  sentence: string,
  change: (books: Books) => Books | undefined,
  happen: (under: TransfersUnderTest) => Promise<void>
): TransfersStep => ({
  sentence,
  possible: ({ now }) => change(now.books) !== undefined,
  happen: async (story, { clock, under }) => {
    await happen(under)
    story.now = await askedAtOnce({ ...story.now, books: change(story.now.books)! }, under, clock, [])
  }
})

const posted = (books: Books, posting: Parameters<typeof apply>[1][number]): Books | undefined => {
  const done = apply(books, [posting])
  return "notebook" in done ? done.notebook : undefined
}

const credits: fc.Arbitrary<TransfersStep> = fc
  .tuple(name, incoming, fc.constantFrom("purchase" as const, "purchase" as const, "admin" as const))
  .map(([who, amount, source]) =>
    fromOutside(
      `${who} gets ${toDecimal(amount)} (${source})`,
      (books) =>
        posted(books, {
          _tag: "Credit",
          account: emailOf(who),
          amount,
          source,
          reference: outside,
          description: ""
        }),
      (under) => under.credit(emailOf(who), amount, source)
    )
  )

const setsStatus: fc.Arbitrary<TransfersStep> = fc
  .tuple(name, fc.constantFrom("active" as const, "active" as const, "suspended" as const))
  .map(([who, status]) =>
    fromOutside(
      `${who} becomes ${status}`,
      (books) => posted(books, { _tag: "SetStatus", account: emailOf(who), status }),
      (under) => under.setStatus(emailOf(who), status)
    )
  )

const joins = (who: string): TransfersStep =>
  fromOutside(
    `${who} joins`,
    (books) => posted(books, { _tag: "Open", account: emailOf(who), tenant: who }),
    (under) => under.join(emailOf(who))
  )

/** Returns a pause and the words that describe it. */
type Pause = (story: Readonly<TransfersStory>) => { readonly millis: number; readonly words: string }

/** Waits until a transfer's deadline or a millisecond before it. If there is no transfer with a deadline, waits for a day. */
const until =
  (
    over: string,
    when: (notebook: TransfersNotebook) => readonly [ModelTransfer, number] | undefined,
    less: number
  ): Pause =>
  ({ now, time }) => {
    const [transfer, at] = when(now) ?? []
    if (transfer === undefined || at === undefined) return { millis: day, words: "1 day passes" }
    return {
      millis: Math.max(0, at - less - time),
      words: `time passes until ${less === 0 ? "" : "a millisecond before "}${label(now, transfer)} ${over}`
    }
  }

const isPending = ({ view }: ModelTransfer): boolean => view.status === "pending"
const isResent = (one: ModelTransfer): boolean => isPending(one) && one.resent_at !== undefined

const expiry = ({ transfers }: TransfersNotebook) => {
  const next = transfers.find(isPending)
  return next === undefined ? undefined : ([next, next.view.expires_at] as const)
}

const endOfPause = ({ transfers }: TransfersNotebook) => {
  const newest = transfers.findLast(isResent)
  return newest?.resent_at === undefined ? undefined : ([newest, newest.resent_at + resendPause] as const)
}

/** Lets time pass. Expired transfers then end while people still act on them. */
const waiting = (pause: Pause, late: ReadonlyArray<Draw>): TransfersStep => {
  const later = (story: Readonly<TransfersStory>) => ({ ...story, time: story.time + pause(story).millis })
  return {
    sentence: (story) => {
      const tried = proposed(later(story), late).map(({ sentence }) => sentence)
      return `${pause(story).words}${tried.length === 0 ? "" : `; then ${inWords(tried)}`}`
    },
    happen: async (story, { clock, under }) => {
      story.time = later(story).time
      const all = proposed(story, late).map(({ asked }) => asked)
      story.now = await askedAtOnce(story.now, under, clock, all)
    },
    get simpler() {
      return late.map((_, i) => waiting(pause, late.toSpliced(i, 1)))
    }
  }
}

const less = fc.constantFrom(0, 0, 1)
const endings = fc.constantFrom<Verb>("Accept", "Accept", "Decline", "Revoke")

const waits: fc.Arbitrary<TransfersStep> = fc.oneof(
  fc.constant(waiting(() => ({ millis: 12 * day, words: "12 days pass" }), [])),
  fc.tuple(less, fc.array(fc.tuple(endings, which), { maxLength: 2 })).map(([millis, tried]) =>
    waiting(
      until("expires", expiry, millis),
      tried.map(([tag, index]) => moving(tag, index, undefined, ({ now, time }) => dueAt(now, time)))
    )
  ),
  fc.tuple(less, fc.integer({ min: 1, max: 2 })).map(([millis, times]) =>
    waiting(
      until("may be sent again", endOfPause, millis),
      Array.from({ length: times }, () => moving("Resend", 0, undefined, ({ now }) => now.transfers.filter(isResent)))
    )
  )
)

export const transferSteps: ReadonlyArray<fc.Arbitrary<TransfersStep>> = [
  credits,
  credits,
  credits,
  draw.map((one) => stepOf([one])),
  draw.map((one) => stepOf([one])),
  draw.map((one) => stepOf([one])),
  fc.array(draw, { minLength: 2, maxLength: 3 }).map(stepOf),
  which.map((index) => stepOf([moving("Resend", index)])),
  copies,
  races,
  races,
  waits,
  waits,
  fc.oneof(setsStatus, setsStatus, fc.constant(joins("dan")))
]

// ---- the suite -----------------------------------------------------------------------------------------------------------------

export interface TransfersSuiteOptions {
  /** Creates a new implementation for each story. It must use this clock. */
  readonly make: (clock: TransfersClock) => Promise<TransfersUnderTest>
  readonly stories?: number | undefined
  /** The maximum number of steps in a story. */
  readonly length?: number | undefined
  /** The seed of an earlier run, to repeat its stories. */
  readonly seed?: number | undefined
}

/** A story's start time, in Unix milliseconds. */
const beginning = 1_700_000_000_000

/** Runs random stories, each with a new implementation. Rejects with the shortest story that fails. */
export const checkTransfers = ({ length = 60, make, seed, stories = 60 }: TransfersSuiteOptions): Promise<void> =>
  tell<TransfersStory, TransfersWorld>({
    steps: transferSteps,
    begin: async () => {
      const story: TransfersStory = { now: noTransfers, keys: 0, time: beginning }
      const clock = { now: () => story.time }
      const world = { under: await make(clock), clock }
      for (const who of people) await joins(who).happen(story, world)
      return { notebook: story, world }
    },
    end: async ({ now }, { under }) => {
      const wrong = await misread(under, now, new Set(now.transfers.map(({ view }) => view.id)))
      if (wrong !== undefined) throw new InvariantBroken(wrong)
    },
    close: async ({ under }) => under.close?.(),
    stories,
    length,
    seed
  })
