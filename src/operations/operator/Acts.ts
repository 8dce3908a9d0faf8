/**
 * The operator's actions on tenants and people. Each action commits together with its audit log entry. If the books reject an action, a separate
 * entry records the refusal.
 *
 * Where the specification is silent:
 * - The reference of a grant or purchase is booked once across all tenants. A repeated request with the same tenant and amount returns `done: false`.
 *   A request with another tenant or amount is rejected.
 * - A take-back debits the tenant's granted credit (`admin`), never purchased or received credit. It takes only available credit: the balance never
 *   falls below zero, reserved credit stays untouched, and the tenant does not owe the remainder. Its references are separate from those of grants.
 * - A suspended tenant pays for no calls and sends no transfers, because its billing account is `suspended`. It keeps its credit.
 * - Suspending a person ends their sign-ins. Until an operator activates the person, the service refuses new sign-ins (403 `account_suspended`) and
 *   rejects their keys. Their tenants continue to work.
 * - Activation by the operator also ends a suspension by the directory. `changed` tells whether a suspension began or ended.
 * - Ending a person's sign-ins keeps their passkeys unless the request contains `passkeys=true`, because a passkey may be the only way to sign in.
 *   The response contains the number of remaining passkeys. A passkey that a thief added in a stolen session works until it is deleted.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Context, Effect, Layer } from "effect"
import { Sessions } from "../../people/auth/Sessions.ts"
import type { AccountId, ApplicationId, TenantId } from "../../kernel/Ids.ts"
import { Ledger } from "../../books/ledger/Ledger.ts"
import type { BooksUnavailable } from "../../books/ledger/rules/Problems.ts"
import type { AccountStatus } from "../../books/ledger/rules/Transaction.ts"
import { Purchases } from "../../money/payments/Purchases.ts"
import type { Passkey, PasskeyId } from "../../people/passkeys/Passkey.ts"
import { Passkeys } from "../../people/passkeys/Passkeys.ts"
import type { PasskeyNotFound } from "../../people/passkeys/Problems.ts"
import { Applications } from "../../people/tenants/Applications.ts"
import * as Tenancy from "../../people/tenants/Directory.ts"
import type { AccountNotFound, ApplicationNotFound } from "../../people/tenants/Problems.ts"
import type { Suspender } from "../../people/tenants/Suspensions.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import * as Access from "./Access.ts"
import type {
  Credited,
  EndingOfSignIns,
  KeyRevoked,
  NewCredit,
  PasskeyDeleted,
  PersonChanged,
  Reason,
  SignInsEnded,
  TakenBack,
  TenantChanged
} from "./Act.ts"
import { AuditLog } from "./AuditLog.ts"
import * as Credits from "./Credits.ts"
import type { Operator } from "./Operator.ts"
import type { BalanceBeyondBooks, ReferenceUsed, TenantClosed, TenantNotFound } from "./Problems.ts"

/** `by` is the operator who acts. Amounts are in nano-USD. */
export interface OperatorActsContract {
  /** Gives a tenant credit that it can spend but not transfer (`admin`). */
  readonly grant: (by: Operator, tenant: TenantId, credit: NewCredit) => Effect.Effect<Credited, CreditProblem>
  /** Takes back the part of a mistaken grant that is neither spent nor reserved. */
  readonly takeBack: (
    by: Operator,
    tenant: TenantId,
    credit: NewCredit
  ) => Effect.Effect<TakenBack, Exclude<CreditProblem, BalanceBeyondBooks>>
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
    /** `suspender` defaults to the operator. */
    how: Reason & { readonly suspender?: Suspender }
  ) => Effect.Effect<PersonChanged, AccountNotFound | BooksUnavailable>
  readonly revokeKey: (
    by: Operator,
    application: ApplicationId,
    reason: Reason
  ) => Effect.Effect<KeyRevoked, ApplicationNotFound | BooksUnavailable>
  readonly endSignIns: (
    by: Operator,
    account: AccountId,
    how: EndingOfSignIns
  ) => Effect.Effect<SignInsEnded, AccountNotFound | BooksUnavailable>
  readonly passkeys: (account: AccountId) => Effect.Effect<ReadonlyArray<Passkey>, AccountNotFound>
  readonly deletePasskey: (
    by: Operator,
    account: AccountId,
    passkey: PasskeyId,
    reason: Reason
  ) => Effect.Effect<PasskeyDeleted, AccountNotFound | PasskeyNotFound | BooksUnavailable>
}

type CreditProblem = TenantNotFound | ReferenceUsed | BalanceBeyondBooks | BooksUnavailable

export class OperatorActs extends Context.Tag("tollgate/operator/Acts")<OperatorActs, OperatorActsContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(OperatorActs, make))
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient
  const parts = {
    sql,
    ledger: yield* Ledger,
    purchases: yield* Purchases,
    tenants: yield* Tenants,
    applications: yield* Applications,
    sessions: yield* Sessions,
    passkeys: yield* Passkeys,
    log: yield* AuditLog,
    tenancy: Tenancy.make(sql)
  }
  return {
    grant: Credits.grant(parts),
    takeBack: Credits.takeBack(parts),
    purchase: Credits.purchase(parts),
    setTenant: Access.setTenant(parts),
    setPerson: Access.setPerson(parts),
    revokeKey: Access.revokeKey(parts),
    endSignIns: Access.endSignIns(parts),
    passkeys: Access.passkeysOf(parts),
    deletePasskey: Access.deletePasskey(parts)
  } satisfies OperatorActsContract
})
