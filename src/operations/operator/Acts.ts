/**
 * What the operator does to tenants and people. Each act and its entry in the audit log are one transaction; an act that the books refuse has an
 * entry of its own.
 *
 * Where the specification is silent:
 * - A grant or purchase is booked once for its reference, over all tenants. The same again, of the same amount and tenant, is answered as
 *   done before; of another it is refused.
 * - A tenant that is suspended pays for no call and sends no transfer: its billing account is `suspended`. What it has stays.
 * - A person who is suspended gets in by nothing that they hold: their sign-ins end, a new one is refused (403 `account_suspended`), and the
 *   keys that they made are refused until they are activated. Tenants that they own go on.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Context, Effect, Layer, Option } from "effect"
import { Sessions } from "../../people/auth/Sessions.ts"
import { billingAccountOf } from "../../kernel/Ids.ts"
import type { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { fromRow } from "../../kernel/Money.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/Problems.ts"
import { balanceOf, statement } from "../../books/ledger/Transaction.ts"
import type { Account, AccountStatus } from "../../books/ledger/Transaction.ts"
import { Purchases } from "../../money/payments/Purchases.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import * as Tenancy from "../../people/tenants/Directory.ts"
import { AccountNotFound, ApplicationNotFound } from "../../people/tenants/Problems.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import type { Credited, KeyRevoked, NewCredit, PersonChanged, Reason, SignInsEnded, TenantChanged } from "./Act.ts"
import * as Audit from "./Audit.ts"
import { AuditLog } from "./AuditLog.ts"
import type { Operator } from "./Operator.ts"
import { BalanceBeyondBooks, ReferenceUsed, TenantClosed, TenantNotFound } from "./Problems.ts"

/** `by` is who acts. Amounts are nano-USD. */
export interface OperatorActsContract {
  /** Gives a tenant credit that it can spend but not send on (`admin`). */
  readonly grant: (by: Operator, tenant: TenantId, credit: NewCredit) => Effect.Effect<Credited, CreditProblem>
  /** Books a purchase that was paid another way. */
  readonly purchase: (by: Operator, tenant: TenantId, credit: NewCredit) => Effect.Effect<Credited, CreditProblem>
  readonly setTenant: (
    by: Operator,
    tenant: TenantId,
    status: Exclude<AccountStatus, "closed">,
    reason: Reason
  ) => Effect.Effect<TenantChanged, TenantNotFound | TenantClosed | BooksUnavailable>
  readonly setPerson: (
    by: Operator,
    account: AccountId,
    status: PersonChanged["status"],
    reason: Reason
  ) => Effect.Effect<PersonChanged, AccountNotFound | BooksUnavailable>
  readonly revokeKey: (
    by: Operator,
    application: ApplicationId,
    reason: Reason
  ) => Effect.Effect<KeyRevoked, ApplicationNotFound | BooksUnavailable>
  readonly endSignIns: (
    by: Operator,
    account: AccountId,
    reason: Reason
  ) => Effect.Effect<SignInsEnded, AccountNotFound | BooksUnavailable>
}

type CreditProblem = TenantNotFound | ReferenceUsed | BalanceBeyondBooks | BooksUnavailable

export class OperatorActs extends Context.Tag("tollgate/operator/Acts")<OperatorActs, OperatorActsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(OperatorActs, make))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const ledger = yield* Ledger
  const purchases = yield* Purchases
  const tenants = yield* Tenants
  const applications = yield* Applications
  const sessions = yield* Sessions
  const log = yield* AuditLog
  const known = Tenancy.make(sql)

  const accountOf = (tenant: TenantId): Effect.Effect<Account, TenantNotFound> =>
    Effect.flatMap(
      ledger.accountOfTenant(tenant),
      Option.match({ onNone: () => new TenantNotFound({ tenant_id: tenant }), onSome: Effect.succeed })
    )

  const refuse = <E>(by: Operator, act: Audit.Act, problem: E & { readonly code: string | undefined }) =>
    Effect.zipRight(log.refused(by, act, problem.code ?? ""), Effect.fail(problem))

  const creditAct = (action: string, tenant_id: TenantId, { amount, description, reason, reference }: NewCredit) => ({
    action,
    tenant_id,
    subject: reference,
    details: { amount_usd: amount, description, reason }
  })

  /** The answer to a reference that was booked before, for `booked`. */
  const bookedBefore = Effect.fnUntraced(function* (
    by: Operator,
    act: Audit.Act,
    tenant_id: TenantId,
    { amount, reference }: NewCredit,
    booked: { readonly tenant_id: TenantId; readonly amount: bigint } | undefined
  ) {
    const account = yield* accountOf(tenant_id)
    if (booked === undefined || booked.tenant_id !== tenant_id || booked.amount !== amount) {
      return yield* refuse(by, act, new ReferenceUsed({ reference }))
    }
    return { tenant_id, amount, reference, balance: balanceOf(account), done: false }
  })

  const grant: OperatorActsContract["grant"] = Effect.fn("OperatorActs.grant")(function* (by, tenant_id, credit) {
    const { amount, description = "granted by the operator", reference } = credit
    const now = yield* Clock.currentTimeMillis
    const act = creditAct("grant", tenant_id, credit)
    const once = statement(
      sql`INSERT INTO tollgate_operator_grants (reference, tenant_id, amount, created_at)
        VALUES (${reference}, ${tenant_id}, ${amount}, ${now}) ON CONFLICT DO NOTHING RETURNING reference`,
      1
    )
    const posting = {
      account: billingAccountOf(tenant_id),
      amount,
      source: "admin",
      reference: `grant_${reference}`,
      description
    } as const
    return yield* ledger.credit(posting, [once, Audit.entry(by, act, now)]).pipe(
      Effect.map(({ balance }) => ({ tenant_id, amount, reference, balance, done: true })),
      Effect.catchTags({
        AccountMissing: () => new TenantNotFound({ tenant_id }),
        BalanceTooLarge: () => refuse(by, act, new BalanceBeyondBooks()),
        Conflict: () => Effect.flatMap(grantBy(reference), (booked) => bookedBefore(by, act, tenant_id, credit, booked))
      })
    )
  })

  const grantBy = (reference: string) =>
    Effect.map(
      Effect.orDie(
        sql<{ tenant_id: TenantId; amount: string }>`SELECT tenant_id, CAST(amount AS TEXT) AS amount
          FROM tollgate_operator_grants WHERE reference = ${reference}`
      ),
      ([row]) => row && { tenant_id: row.tenant_id, amount: fromRow(row.amount) }
    )

  const purchase: OperatorActsContract["purchase"] = Effect.fn("OperatorActs.purchase")(
    function* (by, tenant_id, credit) {
      const { amount, description, reference } = credit
      const now = yield* Clock.currentTimeMillis
      const act = creditAct("purchase", tenant_id, credit)
      yield* accountOf(tenant_id)
      const booked = yield* purchases
        .bookOffline({ tenant_id, amount, reference, description }, [Audit.entry(by, act, now)])
        .pipe(Effect.catchTag("BalanceTooLarge", () => refuse(by, act, new BalanceBeyondBooks())))
      if (booked) {
        return { tenant_id, amount, reference, balance: balanceOf(yield* accountOf(tenant_id)), done: true }
      }
      const earlier = (yield* purchases.payments([reference])).find(({ kind }) => kind === "offline")
      return yield* bookedBefore(by, act, tenant_id, credit, earlier)
    }
  )

  const setTenant: OperatorActsContract["setTenant"] = Effect.fn("OperatorActs.setTenant")(function* (
    by,
    tenant_id,
    status,
    { reason }
  ) {
    const account = yield* accountOf(tenant_id)
    if (account.status === "closed") return yield* new TenantClosed()
    if (account.status === status) return { tenant_id, status, changed: false }
    const now = yield* Clock.currentTimeMillis
    const action = status === "active" ? "tenant.activate" : "tenant.suspend"
    yield* ledger
      .setStatus({ account: billingAccountOf(tenant_id), status }, [
        Audit.entry(by, { action, tenant_id, details: { reason } }, now)
      ])
      .pipe(Effect.catchTags({ AccountMissing: Effect.die, Conflict: Effect.die }))
    return { tenant_id, status, changed: true }
  })

  const personOf = (account_id: AccountId) =>
    Effect.flatMap(known.person(account_id), (person) =>
      person === undefined ? new AccountNotFound({ account_id }) : Effect.succeed(person)
    )

  const setPerson: OperatorActsContract["setPerson"] = Effect.fn("OperatorActs.setPerson")(function* (
    by,
    account_id,
    status,
    { reason }
  ) {
    yield* personOf(account_id)
    const now = yield* Clock.currentTimeMillis
    const entry = (action: string) => Audit.entry(by, { action, account_id, details: { reason } }, now)
    const changed =
      status === "suspended"
        ? yield* tenants.suspend(account_id, [...sessions.endingAll(account_id), entry("person.suspend")])
        : yield* tenants.activate(account_id, [entry("person.activate")])
    return { account_id, status, changed }
  })

  const revokeKey: OperatorActsContract["revokeKey"] = Effect.fn("OperatorActs.revokeKey")(function* (
    by,
    application_id,
    { reason }
  ) {
    const key = yield* known.key(application_id)
    if (key === undefined) return yield* new ApplicationNotFound({ application_id })
    const { account_id, key_prefix, tenant_id } = key
    const now = yield* Clock.currentTimeMillis
    const details = { key_prefix, reason }
    const act = { action: "key.revoke", tenant_id, account_id, subject: application_id, details }
    const removed = applications.remove({ caller: { tenant_id, account_id: null }, application_id }, [
      Audit.entry(by, act, now)
    ])
    yield* Effect.catchTag(removed, "InsufficientRole", Effect.die)
    return { id: application_id, revoked: true }
  })

  const endSignIns: OperatorActsContract["endSignIns"] = Effect.fn("OperatorActs.endSignIns")(function* (
    by,
    account_id,
    { reason }
  ) {
    yield* personOf(account_id)
    const now = yield* Clock.currentTimeMillis
    const ended = yield* sessions.endAll(account_id, (open) => [
      Audit.entry(by, { action: "sign_ins.revoke", account_id, details: { open, reason } }, now)
    ])
    return { account_id, ended }
  })

  return { grant, purchase, setTenant, setPerson, revokeKey, endSignIns } satisfies OperatorActsContract
})
