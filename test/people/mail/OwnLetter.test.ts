/** Mail to oneself from a program, without HTTP: to the sandbox's mailbox, charged as Nano, refused by tag. */
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { layer as layerSecret } from "../../../src/storage/secret/DeploymentSecret.ts"
import type { Caller } from "../../../src/kernel/Caller.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { Outbox } from "../../../src/people/mail/Outbox.ts"
import { SelfMail } from "../../../src/calls/email/SelfMail.ts"
import { LetterPrice } from "../../../src/people/mail/Settings.ts"
import { PriceList } from "../../../src/books/prices/PriceList.ts"
import { Belonging } from "../../../src/people/tenants/Belonging.ts"
import { Tenants } from "../../../src/people/tenants/Tenants.ts"
import { Mail } from "../../../src/upstream/mail/Mail.ts"
import { booksOf, fault, holds, interruptedAtWork, Outside, over } from "../../support/Called.ts"

/** 0.001 USD a letter. */
const price = usd / 1_000n

const mailbox = Layer.unwrapEffect(
  Effect.map(Outside, ({ configuration }) => {
    const { from, host, port } = configuration["mail"] as { from: string; host: string; port: number }
    return Mail.layerSmtp({ from, host, port, secure: false })
  })
)

const settings = Layer.mergeAll(
  LetterPrice.layer(1_000_000_000_000_000n as UnitPrice),
  PriceList.layerNone,
  layerSecret(new TextEncoder().encode("a secret of thirty-two characters"))
)

const room = SelfMail.layer.pipe(
  Layer.provideMerge(Outbox.layer),
  Layer.provideMerge(Tenants.layer),
  Layer.provideMerge(Belonging.layer),
  Layer.provide(settings),
  Layer.provide(mailbox)
)

/** A caller with this balance and a verified address by default. */
const writer = Effect.fnUntraced(function* (name: string, balance: bigint, email_verified = true) {
  const { welcome } = yield* Tenants
  const { submit } = yield* Writer
  const email = `${name}@example.com`
  const { account_id, home_tenant_id } = yield* welcome({
    provider: "google",
    subject: name,
    email,
    email_verified,
    name
  })
  const account = billingAccountOf(home_tenant_id)
  yield* submit({
    postings: [
      { _tag: "Credit", account, amount: balance, source: "purchase", reference: "order 1", description: "paid" }
    ],
    statements: []
  })
  const caller: Caller = {
    account_id,
    tenant_id: home_tenant_id,
    application_id: null,
    credential: "api_key",
    team_first: false
  }
  return { caller, email }
})

interface Delivered {
  readonly to: string
  readonly subject: string
  readonly text: string
}

const lettersTo = (email: string) =>
  Effect.flatMap(Outside, ({ control }) =>
    Effect.promise(async () => {
      const all = (await (await fetch(`${control}/mail`)).json()) as ReadonlyArray<Delivered>
      return all.filter(({ to }) => to === email)
    })
  )

const letter = { subject: "A note", body: "to myself" }

layer(over(room, "none"), { excludeTestServices: true })("a letter to oneself", (it) => {
  it.effect("has left before its receipt, and costs its price", () =>
    Effect.gen(function* () {
      const { caller, email } = yield* writer("ada", usd)
      const sent = yield* (yield* SelfMail).send({ caller, letter })
      expect(sent).toMatchObject({ to: email, receipt: { charged: price, balance: usd - price } })
      expect(sent.message_id).toMatch(/^[0-9a-f]{32}@tollgate\.localhost$/)
      expect(yield* lettersTo(email)).toEqual([{ to: email, subject: "A note", text: "to myself" }])
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - price,
        reserved: 0n,
        calls: [{ id: sent.receipt.usage_id, cost: price, units: 1, success: true }],
        findings: []
      })
    })
  )

  it.effect("that the mail server refuses for good costs nothing", () =>
    Effect.gen(function* () {
      const { caller, email } = yield* writer("refused", usd)
      yield* fault("mail", { status: 550 })
      const { send } = yield* SelfMail
      const refused = yield* Effect.catchTag(send({ caller, letter }), "LetterRefused", ({ _tag }) =>
        Effect.succeed(_tag)
      )
      expect(refused).toBe("LetterRefused")
      expect(yield* lettersTo(email)).toEqual([])
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd,
        reserved: 0n,
        calls: [{ cost: 0n, success: false }]
      })
    })
  )

  it.effect("is charged if the caller is interrupted while it is sent", () =>
    Effect.gen(function* () {
      const { caller, email } = yield* writer("leaves", usd)
      yield* fault("mail", holds)
      const { interrupted } = yield* interruptedAtWork("mail", (yield* SelfMail).send({ caller, letter }))
      expect(interrupted).toBe(true)
      expect(yield* lettersTo(email)).toHaveLength(1)
      expect(yield* booksOf(caller)).toMatchObject({
        balance: usd - price,
        reserved: 0n,
        calls: [{ cost: price, success: true }],
        findings: []
      })
    })
  )

  it.effect("without credit or a verified address is refused by its tag", () =>
    Effect.gen(function* () {
      const { send } = yield* SelfMail
      const poor = yield* writer("poor", price - 1n)
      expect(yield* Effect.flip(send({ caller: poor.caller, letter }))).toMatchObject({
        _tag: "InsufficientCredits",
        available: price - 1n,
        required: price,
        payer: billingAccountOf(poor.caller.tenant_id)
      })
      expect(yield* lettersTo(poor.email)).toEqual([])
      const { caller } = yield* writer("unverified", usd, false)
      expect(yield* Effect.flip(send({ caller, letter }))).toMatchObject({
        _tag: "EmailNotVerified",
        account_id: caller.account_id
      })
    })
  )
})
