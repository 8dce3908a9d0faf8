/**
 * Stories of people who send each other credit, over the real books and a steered clock: they fund, spend, send, accept, decline,
 * revoke, send again, wait, several at once. A bystander's notebook says what each of them has after every step and how each
 * transfer stands; at the end all credit is accounted for.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect, Either, Layer, Logger, LogLevel, ManagedRuntime } from "effect"
import fc from "fast-check"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import type { AccountId, TenantId } from "../../../src/kernel/Ids.ts"
import { toDecimal, usd } from "../../../src/kernel/Money.ts"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import { verify } from "../../../src/app/Checks.ts"
import { Ledger } from "../../../src/books/ledger/Ledger.ts"
import type { Posting } from "../../../src/books/ledger/rules/Transaction.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { LetterLimits } from "../../../src/people/mail/Settings.ts"
import { Outbox } from "../../../src/people/mail/Outbox.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { Belonging } from "../../../src/people/tenants/Belonging.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { judge, moves } from "../../../src/money/transfers/States.ts"
import type { Transfer } from "../../../src/money/transfers/Transfer.ts"
import type { Move, TransferId } from "../../../src/money/transfers/States.ts"
import { Transfers } from "../../../src/money/transfers/Transfers.ts"
import { Mail } from "../../../src/upstream/mail/Mail.ts"
import { tell } from "../../support/story.ts"
import type { Step } from "../../support/story.ts"
import * as TestDatabase from "../../support/database.ts"

const rooms = Transfers.layer.pipe(
  Layer.provideMerge(Outbox.layer),
  // The story is of credit: letters are not what it runs out of.
  Layer.provide(Layer.succeed(LetterLimits, { per_hour: 1_000_000, per_day_to_one_address: 1_000_000 })),
  Layer.provideMerge(Layer.mergeAll(Ledger.layer, Tenants.layer)),
  Layer.provideMerge(Belonging.layer),
  Layer.provide([
    PriceList.layerNone,
    Mail.layerNone,
    ServiceInfo.layer({ service_name: "Tollgate", key_prefix: "svc", public_url: "http://127.0.0.1:8787" })
  ]),
  Layer.provideMerge(DeploymentSecret.layer(new Uint8Array(32).fill(1)))
)

/** On one connection, where each waits for the other; and as in the service, where everybody reads while the writer writes. */
const inMemory = rooms.pipe(Layer.provideMerge(TestDatabase.writer), Layer.provideMerge(TestDatabase.sql))
const onThread = (file: string) =>
  rooms.pipe(Layer.provideMerge(TestDatabase.writerAt(file)), Layer.provideMerge(TestDatabase.sqlAt(file)))

const people = ["ada", "bob", "cyd"] as const
type Name = (typeof people)[number]
const days = 86_400_000

interface Purse {
  giftable: bigint
  granted: bigint
  held: bigint
}

interface Noted {
  readonly id: TransferId
  readonly from: Name
  readonly to: Name
  readonly amount: bigint
  readonly key: string
  readonly expires_at: number
  status: Transfer["status"]
  resent_at: number | undefined
}

interface Notebook {
  readonly purses: Record<Name, Purse>
  readonly transfers: Array<Noted>
  spent: bigint
  came: bigint
  calls: number
}

interface World {
  readonly run: <A, E>(effect: Effect.Effect<A, E, Layer.Layer.Success<typeof inMemory>>) => Promise<A>
  readonly close: () => Promise<void>
  readonly clock: { now: number }
  readonly accounts: Record<Name, { readonly account_id: AccountId; readonly home: TenantId }>
}

type Deed = Step<Notebook, World>

const emailOf = (name: Name) => `${name}@example.com`

const caller = (world: World, who: Name) => ({
  account_id: world.accounts[who].account_id,
  tenant_id: world.accounts[who].home,
  application_id: null,
  credential: "user_token" as const,
  team_first: false
})

/** What must be of the transfer when it ends so. */
const noteEnd = (notebook: Notebook, transfer: Noted, move: Move) => {
  transfer.status = moves[move].to
  notebook.purses[transfer.from].held -= transfer.amount
  const lands = moves[move].escrow === "recipient" ? transfer.to : transfer.from
  notebook.purses[lands].giftable += transfer.amount
}

const noteTime = (notebook: Notebook, now: number) => {
  for (const one of notebook.transfers) {
    if (one.status === "pending" && one.expires_at <= now) noteEnd(notebook, one, "expire")
  }
}

const compare = async (notebook: Notebook, world: World) => {
  await world.run(
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const transfers = yield* Transfers
      yield* transfers.expire
      for (const who of people) {
        const found = yield* ledger.account(billingAccountOf(world.accounts[who].home))
        const { giftable, granted, held, reserved } = found._tag === "Some" ? found.value : expect.fail("no account")
        expect({ who, giftable, granted, held, reserved }).toEqual({ who, ...notebook.purses[who], reserved: 0n })
      }
      for (const one of notebook.transfers) {
        const { status } = yield* transfers.find({ caller: caller(world, one.from), transfer_id: one.id })
        expect([one.id, status]).toEqual([one.id, one.status])
      }
    })
  )
}

const deed = (
  sentence: string,
  happen: Deed["happen"],
  possible?: (notebook: Readonly<Notebook>) => boolean
): Deed => ({
  sentence,
  ...(possible !== undefined && { possible }),
  happen: async (notebook, world) => {
    await happen(notebook, world)
    noteTime(notebook, world.clock.now)
    await compare(notebook, world)
  }
})

const name = fc.constantFrom(...people)
const cents = fc.integer({ min: 1, max: 1_200 }).map((n) => BigInt(n) * (usd / 100n))

const post = (posting: Posting) =>
  Effect.flatMap(Writer, ({ submit }) => submit({ postings: [posting], statements: [] }))

const credits = fc.tuple(name, cents, fc.constantFrom("purchase", "admin")).map(([who, amount, source]) =>
  deed(`${who} gets ${toDecimal(amount)} (${source})`, async (notebook, world) => {
    await world.run(
      post({
        _tag: "Credit",
        account: billingAccountOf(world.accounts[who].home),
        amount,
        source: source as "purchase" | "admin",
        reference: "pay",
        description: "d"
      })
    )
    notebook.came += amount
    notebook.purses[who][source === "purchase" ? "giftable" : "granted"] += amount
  })
)

const spends = fc.tuple(name, cents).map(([who, cost]) =>
  deed(`${who} spends up to ${toDecimal(cost)}`, async (notebook, world) => {
    const { account_id, home } = world.accounts[who]
    const call = `call_${++notebook.calls}`
    const facts = {
      account_id,
      tenant_id: home,
      application_id: null,
      usage_type: "tool",
      endpoint: "search",
      model: "m",
      provider: "p"
    } as const
    const source = { billing_account_id: billingAccountOf(home), tenant_id: home, kind: "own", why: "own" } as const
    const reserved = await world.run(
      Effect.either(post({ _tag: "Reserve", call, sources: [source], least: cost, most: cost, run: "r", facts }))
    )
    const purse = notebook.purses[who]
    expect(Either.isRight(reserved)).toBe(purse.giftable + purse.granted >= cost)
    if (Either.isLeft(reserved)) return
    const outcome = {
      cost,
      prompt_tokens: 0,
      completion_tokens: 0,
      units: 1,
      success: true,
      error_type: null,
      usage_source: "provider",
      latency_ms: 1
    } as const
    await world.run(post({ _tag: "Settle", call, outcome }))
    const granted = cost < purse.granted ? cost : purse.granted
    purse.granted -= granted
    purse.giftable -= cost - granted
    notebook.spent += cost
  })
)

const create = (world: World, from: Name, to: Name, amount: bigint, key: string) =>
  world.run(
    Effect.flatMap(Transfers, (transfers) =>
      Effect.either(
        transfers.create({
          caller: caller(world, from),
          key,
          transfer: { amount, recipient_email: emailOf(to), kind: "transfer" }
        })
      )
    )
  )

const sends = fc.tuple(name, name, cents, fc.integer({ min: 1, max: 3 })).map(([from, to, amount, copies]) =>
  deed(
    `${from} sends ${toDecimal(amount)} to ${to}${copies === 1 ? "" : `, asked ${copies} times at once`}`,
    async (notebook, world) => {
      const key = `key-${notebook.transfers.length}-${notebook.calls++}-0123456789`
      const answers = await Promise.all(Array.from({ length: copies }, () => create(world, from, to, amount, key)))
      const purse = notebook.purses[from]
      const available = purse.giftable + purse.granted
      const wanted =
        from === to
          ? { _tag: "TransferSelf" }
          : available < amount
            ? { _tag: "TransferInsufficientCredits", available, required: amount }
            : purse.giftable < amount
              ? { _tag: "TransferInsufficientGiftable", giftable: purse.giftable, required: amount }
              : undefined
      if (wanted !== undefined) {
        for (const one of answers) expect(Either.isLeft(one) ? one.left : "made").toMatchObject(wanted)
        return
      }
      const made = answers.map((one) => (Either.isRight(one) ? one.right : expect.fail(one.left._tag)))
      expect(made.filter(({ created }) => created)).toHaveLength(1)
      const { transfer } = made[0]!
      notebook.transfers.push({
        id: transfer.id,
        from,
        to,
        amount,
        key,
        expires_at: world.clock.now + 30 * days,
        status: "pending",
        resent_at: undefined
      })
      purse.giftable -= amount
      purse.held += amount
    }
  )
)

const which = fc.nat({ max: 20 })
const pick = (notebook: Readonly<Notebook>, index: number) => notebook.transfers[index % notebook.transfers.length]!
const some = ({ transfers }: Readonly<Notebook>) => transfers.length > 0

/** Moves of a transfer, at once, each by the one who may make it; answers each refusal's name, or nothing. */
const ask = (world: World, one: Noted, tried: ReadonlyArray<Exclude<Move, "expire">>) =>
  // Each looks before any of them acts: that is what makes it a race.
  world.run(Effect.forEach(tried, (move) => asking(world, one, move), { concurrency: "unbounded" }))

const asking = (world: World, one: Noted, move: Exclude<Move, "expire">) =>
  Effect.flatMap(Transfers, (transfers) => {
    const by = move === "revoke" ? one.from : one.to
    const what = { caller: caller(world, by), transfer_id: one.id }
    const asked: Effect.Effect<Transfer, { readonly _tag: string }> =
      move === "accept" ? transfers.accept(what) : move === "decline" ? transfers.decline(what) : transfers.revoke(what)
    return Effect.match(asked, {
      onFailure: (problem): string | undefined => problem._tag,
      onSuccess: () => undefined
    })
  })

const move = fc.constantFrom("accept" as const, "decline" as const, "revoke" as const)

const ends = fc.tuple(which, move).map(([index, move]) =>
  deed(
    `somebody ${move}s transfer ${index}`,
    async (notebook, world) => {
      const one = pick(notebook, index)
      const verdict = judge(one.status, move)
      expect([move, (await ask(world, one, [move]))[0]]).toEqual([
        move,
        verdict === "refuse" ? "TransferNotPending" : undefined
      ])
      if (verdict === "make") noteEnd(notebook, one, move)
    },
    some
  )
)

const races = fc.tuple(which, fc.array(move, { minLength: 2, maxLength: 4 })).map(([index, tried]) =>
  deed(
    `of transfer ${index}, at once: ${tried.join(", ")}`,
    async (notebook, world) => {
      const one = pick(notebook, index)
      const before = one.status
      const answers = await ask(world, one, tried)
      const { status } = await world.run(
        Effect.flatMap(Transfers, (transfers) =>
          transfers.find({ caller: caller(world, one.from), transfer_id: one.id })
        )
      )
      if (before === "pending") {
        const won = tried.find((move) => moves[move].to === status)
        expect(won).toBeDefined()
        noteEnd(notebook, one, won!)
      } else expect(status).toBe(before)
      for (const [i, move] of tried.entries()) {
        // A move that is not the state's own was refused; the recipient's own is answered the same again.
        if (moves[move].to !== status) expect([move, answers[i]]).toEqual([move, "TransferNotPending"])
        else if (move !== "revoke") expect([move, answers[i]]).toEqual([move, undefined])
      }
    },
    some
  )
)

const resends = which.map((index) =>
  deed(
    `transfer ${index} is sent again`,
    async (notebook, world) => {
      const one = pick(notebook, index)
      const asked = await world.run(
        Effect.flatMap(Transfers, (transfers) =>
          Effect.match(transfers.resend({ caller: caller(world, one.from), transfer_id: one.id }), {
            onFailure: ({ _tag }): string => _tag,
            onSuccess: () => "sent"
          })
        )
      )
      const soon = one.resent_at !== undefined && one.resent_at > world.clock.now - days / 2
      expect(asked).toBe(one.status !== "pending" ? "TransferNotPending" : soon ? "TransferResendTooSoon" : "sent")
      if (asked === "sent") one.resent_at = world.clock.now
    },
    some
  )
)

const replays = fc.tuple(which, fc.boolean()).map(([index, same]) =>
  deed(
    `transfer ${index} is asked for again${same ? "" : ", with another amount"}`,
    async (notebook, world) => {
      const one = pick(notebook, index)
      const answer = await create(world, one.from, one.to, same ? one.amount : one.amount + usd, one.key)
      if (same)
        expect(Either.isRight(answer) && [answer.right.created, answer.right.transfer.id]).toEqual([false, one.id])
      else expect(Either.isLeft(answer) && answer.left._tag).toBe("TransferKeyReused")
    },
    some
  )
)

const passes = fc.constantFrom(1, 0.4, 0.6, 12, 29, 30).map((count) =>
  deed(`${count} days pass`, async (_, world) => {
    world.clock.now += count * days
  })
)

const begin = async (layer: typeof inMemory | ReturnType<typeof onThread>, folder?: string) => {
  const time = { now: 1_700_000_000_000 }
  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => time.now,
    unsafeCurrentTimeNanos: () => BigInt(time.now) * 1_000_000n,
    currentTimeNanos: Effect.sync(() => BigInt(time.now) * 1_000_000n),
    currentTimeMillis: Effect.sync(() => time.now),
    // Nobody is woken here: what is due ends when it is looked at.
    sleep: () => Effect.never
  }
  const runtime = ManagedRuntime.make(Layer.provideMerge(layer, Layer.setClock(clock)))
  const accounts = {} as World["accounts"]
  for (const who of people) {
    const { account_id, home_tenant_id } = await runtime.runPromise(
      Effect.flatMap(Tenants, ({ welcome }) =>
        welcome({ provider: "google", subject: who, email: emailOf(who), email_verified: true, name: who })
      )
    )
    accounts[who] = { account_id, home: home_tenant_id }
  }
  const purse = (): Purse => ({ giftable: 0n, granted: 0n, held: 0n })
  const notebook: Notebook = {
    purses: { ada: purse(), bob: purse(), cyd: purse() },
    transfers: [],
    spent: 0n,
    came: 0n,
    calls: 0
  }
  const world: World = {
    run: (effect) => runtime.runPromise(effect),
    close: async () => {
      await runtime.dispose()
      if (folder === undefined) return
      await TestDatabase.drop(folder)
      rmSync(folder, { recursive: true, force: true })
    },
    clock: time,
    accounts
  }
  return { notebook, world }
}

const beginOnThread = () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-"))
  return begin(onThread(join(folder, "books.db")), folder)
}

describe("people who send each other credit", () => {
  it.each([
    { where: "in memory", begin: () => begin(inMemory), stories: TestDatabase.isPostgres ? 60 : 200 },
    { where: "through the writer's thread", begin: beginOnThread, stories: 10 }
  ])("never lose or make any, whatever they do and in whichever order, $where", async ({ begin, stories }) => {
    await tell<Notebook, World>({
      steps: [credits, credits, spends, sends, sends, sends, ends, races, races, resends, replays, passes],
      begin,
      end: async (notebook, world) => {
        expect(await world.run(verify)).toEqual([])
        const kept = people.reduce((sum, who) => {
          const { giftable, granted, held } = notebook.purses[who]
          return sum + giftable + granted + held
        }, 0n)
        expect(kept + notebook.spent).toBe(notebook.came)
      },
      close: (world) => world.close(),
      stories,
      length: 40
    })
  })

  it("do not wait for a transfer that cannot be ended: the others end in time", async () => {
    const { world } = await begin(inMemory)
    const ids = await world.run(
      Effect.gen(function* () {
        const { submit } = yield* Writer
        const transfers = yield* Transfers
        const account = billingAccountOf(world.accounts.ada.home)
        const credit = {
          _tag: "Credit",
          account,
          amount: 10n * usd,
          source: "purchase",
          reference: "r",
          description: "d"
        }
        yield* submit({ postings: [credit as Posting], statements: [] })
        return yield* Effect.forEach(["first", "second", "third"], (key) =>
          Effect.map(
            transfers.create({
              caller: caller(world, "ada"),
              key: `${key}-0123456789abcdef`,
              transfer: { amount: usd, recipient_email: emailOf("bob"), kind: "gift" }
            }),
            ({ transfer }) => transfer.id
          )
        )
      })
    )
    const statuses = Effect.gen(function* () {
      const { records } = yield* (yield* Transfers).sent({ caller: caller(world, "ada"), page: 1, per_page: 10 })
      // Ids of one millisecond are in no order.
      return ids.map((id) => records.find((record) => record.id === id)?.status)
    })
    const spoil = (by: string) =>
      Effect.flatMap(SqlClient, (sql) =>
        sql.unsafe(`UPDATE tollgate_transfers SET amount = amount ${by} WHERE id = ?`, [ids[1]])
      )
    await world.run(spoil("* 1000"))
    world.clock.now += 31 * days
    const quiet = Logger.withMinimumLogLevel(LogLevel.None)
    expect(await world.run(Effect.flatMap(Transfers, ({ expire }) => expire).pipe(quiet))).toBe(2)
    expect(await world.run(statuses.pipe(quiet))).toEqual(["expired", "pending", "expired"])
    await world.run(spoil("/ 1000"))
    expect(await world.run(statuses)).toEqual(["expired", "expired", "expired"])
    expect(await world.run(verify)).toEqual([])
    await world.close()
  })
})
