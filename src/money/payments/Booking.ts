/** Books payments: credits each payment once, and takes back refunded and disputed amounts. */
import { Clock, Effect } from "effect"
import * as Ids from "../../kernel/Ids.ts"
import { cent } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import type { LedgerContract } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import * as Statements from "../../books/ledger/write/Statements.ts"
import type { Posting } from "../../books/ledger/rules/Transaction.ts"
import type { WriterContract } from "../../books/ledger/write/Writer.ts"
import { offlineId } from "./Facts.ts"
import type * as Facts from "./Facts.ts"
import { dueOf, merged } from "./Movement.ts"
import type { Movement } from "./Movement.ts"
import type { PurchasesContract } from "./Purchases.ts"

interface Parts {
  readonly writer: WriterContract
  readonly ledger: LedgerContract
  readonly facts: ReturnType<typeof Facts.make>
}

export const make = (parts: Parts) => ({
  book: book(parts),
  /**
   * Applies refunds and disputes to a payment and updates the books. If `received` is empty, books an amount that an earlier version of the service
   * left due.
   */
  applyMovements: (payment_id: string, received: ReadonlyArray<Movement>) =>
    applyMovements(parts, payment_id, received),
  bookOffline: bookOffline(parts)
})

const book = (parts: Parts): PurchasesContract["book"] =>
  Effect.fn("Purchases.book")(function* (paid, beside) {
    const { facts, writer } = parts
    const { cents, kind, payment_id, tenant_id } = paid
    const amount = BigInt(cents) * cent
    const now = yield* Clock.currentTimeMillis
    const known = yield* facts.find(payment_id)
    if (known.payment !== undefined || amount <= 0n) {
      if (beside.length === 0) return
      return yield* Statements.write(writer, ...beside)
    }
    // Refunds and disputes can arrive before the payment.
    const due = dueOf(amount, known.movements)
    const credit = {
      _tag: "Credit",
      account: Ids.billingAccountOf(tenant_id),
      amount,
      source: "purchase",
      reference: payment_id,
      description: kind === "checkout" ? "credits purchased" : "credits purchased by auto-reload"
    } as const
    const made = writer.submit({
      postings:
        due > 0n
          ? [credit, takeBack(tenant_id, payment_id, due, payment_id, "purchase refunded or disputed")]
          : [credit],
      statements: [
        facts.unchanged(payment_id, known),
        facts.addPayment({ id: payment_id, tenant_id, kind, amount, due, created_at: now }),
        ...beside
      ]
    })
    yield* made.pipe(
      Effect.asVoid,
      Effect.catchTags({
        // A concurrent event changed the payment, so the booking is retried.
        Conflict: () => book(parts)(paid, beside),
        AccountMissing: () =>
          Effect.annotateLogs(Effect.logError("received a payment for a tenant that does not exist"), {
            payment_id,
            tenant_id
          }),
        BalanceTooLarge: Effect.die
      })
    )
  })

const applyMovements = Effect.fn("Purchases.applyMovements")(function* (
  parts: Parts,
  payment_id: string,
  received: ReadonlyArray<Movement>
): Effect.fn.Return<void, BooksUnavailable> {
  const { facts, writer } = parts
  const known = yield* facts.find(payment_id)
  const { payment } = known
  const movements = merged(known.movements, received)
  const news = movements.filter((one) => !known.movements.includes(one))
  if (news.length === 0 && payment?.due === payment?.followed) return
  const now = yield* Clock.currentTimeMillis
  const due = payment === undefined ? 0n : dueOf(payment.amount, movements)
  const by = due - (payment === undefined ? 0n : yield* facts.followed(payment_id))
  const postings = payment === undefined ? [] : changeOf(payment.tenant_id, payment_id, by, news)
  const statements = [
    facts.unchanged(payment_id, known),
    ...news.map((movement) => facts.putMovement(payment_id, movement, now)),
    ...(payment === undefined ? facts.forget(now) : [facts.setDue(payment_id, due)])
  ]
  const done = yield* writer.submit({ postings, statements }).pipe(
    Effect.as(true),
    Effect.catchTags({
      Conflict: () => Effect.succeed(false),
      AccountMissing: Effect.die,
      BalanceTooLarge: Effect.die
    })
  )
  // A concurrent event changed the payment, so the booking is retried.
  if (!done) return yield* applyMovements(parts, payment_id, received)
  if (payment === undefined) {
    yield* Effect.annotateLogs(
      Effect.logWarning("received a refund or dispute for an unknown payment; it is stored until the payment arrives"),
      { payment_id, movement: news[0]?.id }
    )
  }
})

const bookOffline = ({ facts, ledger }: Parts): PurchasesContract["bookOffline"] =>
  Effect.fn("Purchases.bookOffline")(function* (payment, beside = []) {
    const { amount, description, reference, tenant_id } = payment
    const created_at = yield* Clock.currentTimeMillis
    const id = offlineId(reference)
    const credit = {
      account: Ids.billingAccountOf(tenant_id),
      amount,
      source: "purchase",
      reference: id,
      description: description ?? `credits purchased (${reference})`
    } as const
    return yield* ledger
      .credit(credit, [facts.addPayment({ id, tenant_id, kind: "offline", amount, due: 0n, created_at }), ...beside])
      .pipe(
        Effect.as(true),
        Effect.catchTags({ Conflict: () => Effect.succeed(false), AccountMissing: () => Effect.succeed(false) })
      )
  })

/**
 * Builds the posting that takes back `by` more of a payment. If `by` is negative, the posting returns `-by`. `news` contains the reason, unless an
 * earlier version of the service already recorded it.
 */
const changeOf = (
  tenant: string,
  payment: string,
  by: Nano,
  news: ReadonlyArray<Movement>
): ReadonlyArray<Extract<Posting, { readonly _tag: "Credit" | "TakeBack" }>> => {
  if (by === 0n) return []
  // A credit with the payment's id as its reference would be the purchase itself.
  const { id, kind } = news.find((one) => one.kind !== "total") ?? news[0] ?? { id: payment, kind: undefined }
  if (by > 0n) {
    const why = kind === undefined ? "refunded or disputed" : kind === "dispute" ? "disputed" : "refunded"
    return [takeBack(tenant, payment, by, id, `purchase ${why}`)]
  }
  return [
    {
      _tag: "Credit",
      account: Ids.billingAccountOf(tenant),
      amount: -by,
      source: "purchase",
      reference: id,
      description: kind === "dispute" ? "dispute won" : "refund failed",
      payment
    }
  ]
}

const takeBack = (tenant: string, payment: string, amount: Nano, reference: string, description: string) =>
  ({ _tag: "TakeBack", account: Ids.billingAccountOf(tenant), amount, reference, description, payment }) as const
