import { HttpApiBuilder } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { BillingAccounts } from "../../money/billing/BillingAccounts.ts"
import type { BillingAccountsContract } from "../../money/billing/BillingAccounts.ts"
import { ledgerOf } from "../../money/billing/Query.ts"
import { storable } from "../../http/lanes/Answer.ts"
import { UnsupportedMediaType } from "../../http/contract/Problems.ts"
import { envelope } from "../../kernel/Envelope.ts"
import type { AccountId } from "../../kernel/Ids.ts"
import { Explanations } from "../../money/usage/Explanations.ts"
import { recordsOf } from "../../money/usage/Query.ts"
import { Records } from "../../money/usage/Records.ts"
import { OperatorApi } from "./Api.ts"
import { OperatorActs } from "./Acts.ts"
import type { OperatorActsContract } from "./Acts.ts"
import { AuditLog } from "./AuditLog.ts"
import type { AuditLogContract } from "./AuditLog.ts"
import { CurrentOperator } from "./CurrentOperator.ts"
import { OperatorDirectory } from "./Directory.ts"
import * as LiveEvents from "./LiveEvents.ts"
import type { SignedInOperator } from "./Operator.ts"
import { TenantNotFound } from "./Problems.ts"
import type { ReloadRefused } from "./Problems.ts"
import { Reload } from "./Reload.ts"
import type { Reloaded } from "./Reload.ts"
import { ManagementKeys } from "./ManagementKeys.ts"
import { holderOf } from "./Holder.ts"
import { OperatorSessions } from "./Sessions.ts"
import type { OperatorSessionsContract } from "./Sessions.ts"
import { OperatorUpstreams } from "./Upstreams.ts"
import type { OperatorUpstreamsContract } from "./Upstreams.ts"
import { OperatorWatch } from "./Watch.ts"

const isCsv = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  /^text\/csv *(?:;|$)/i.test(headers["content-type"] ?? "")

const answered = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.map(storable(effect), (result) => envelope(result))

/** Runs an action as the current operator and wraps its result in the envelope. */
const by = <A, E, R>(act: (operator: SignedInOperator) => Effect.Effect<A, E, R>) =>
  answered(Effect.flatMap(CurrentOperator, act))

const sessionsOf = (sessions: OperatorSessionsContract, { session_id }: SignedInOperator) =>
  Effect.map(sessions.list, (found) => ({
    sessions: found.map((session) => ({ ...session, current: session.id === session_id }))
  }))

const ledgerPage = (billing: BillingAccountsContract, asked: Parameters<BillingAccountsContract["ledger"]>[0]) =>
  Effect.mapError(billing.ledger(asked), () => new TenantNotFound({ tenant_id: asked.tenant_id }))

/** Reloads the configuration. The audit log lists the changed entries, or the reason why the configuration was rejected. */
const reloadBy = (log: AuditLogContract, reload: Effect.Effect<Reloaded, ReloadRefused>, me: SignedInOperator) =>
  reload.pipe(
    Effect.tap(({ changed }) =>
      log.done(me, { action: "configuration.reload", details: { changed: changed.join(" ") } })
    ),
    Effect.tapErrorTag("ReloadRefused", ({ message }) => log.refused(me, { action: "configuration.reload" }, message))
  )

const driftIn = (
  { drift }: OperatorUpstreamsContract,
  request: HttpServerRequest.HttpServerRequest,
  only: { readonly provider?: string | undefined }
) =>
  isCsv(request)
    ? answered(Effect.flatMap(Effect.orDie(request.text), (text) => drift({ text, ...only })))
    : new UnsupportedMediaType({ message: "the request body must be text/csv" })

const passkeysOf = ({ passkeys }: OperatorActsContract, account: AccountId) =>
  Effect.map(passkeys(account), (found) => ({ passkeys: found }))

export const OperatorHttp = HttpApiBuilder.group(
  contract.add(OperatorApi),
  "operator",
  Effect.fnUntraced(function* (handlers) {
    const sessions = yield* OperatorSessions
    const keys = yield* ManagementKeys
    const log = yield* AuditLog
    const directory = yield* OperatorDirectory
    const acts = yield* OperatorActs
    const billing = yield* BillingAccounts
    const records = yield* Records
    const explanations = yield* Explanations
    const watch = yield* OperatorWatch
    const upstreams = yield* OperatorUpstreams
    const reload = yield* Reload
    const live = LiveEvents.make(holderOf(sessions, keys), watch)
    return handlers
      .handle("me", () => by((me) => Effect.succeed(me)))
      .handle("sessions", () => by((me) => sessionsOf(sessions, me)))
      .handle("endSession", ({ path }) =>
        by((me) => Effect.map(sessions.end(path.session_id, me), (ended) => ({ ended })))
      )
      .handle("managementKeys", () => answered(Effect.map(keys.list, (found) => ({ keys: found }))))
      .handle("createManagementKey", ({ payload }) => by((me) => keys.create(me, payload)))
      .handle("endManagementKey", ({ path }) =>
        by((me) => Effect.map(keys.end(me, path.key_id), (ended) => ({ ended })))
      )
      .handle("audit", ({ urlParams }) => answered(log.page(urlParams)))
      .handle("search", ({ urlParams: { limit, q } }) => answered(directory.search(q, limit)))
      .handle("tenants", ({ urlParams }) => answered(directory.tenants(urlParams)))
      .handle("tenant", ({ path }) => answered(directory.tenant(path.tenant_id)))
      .handle("ledger", ({ path: { tenant_id }, urlParams }) =>
        answered(Effect.flatMap(ledgerOf(urlParams), (asked) => ledgerPage(billing, { tenant_id, ...asked })))
      )
      .handle("usage", ({ path: { tenant_id }, urlParams }) =>
        answered(Effect.flatMap(recordsOf(urlParams), (asked) => records.page({ tenant_id, ...asked })))
      )
      .handle("explain", ({ path }) => answered(explanations.of(path)))
      .handle("person", ({ path }) => answered(directory.person(path.account_id)))
      .handle("grant", ({ path, payload }) => by((me) => acts.grant(me, path.tenant_id, payload)))
      .handle("takeBack", ({ path, payload }) => by((me) => acts.takeBack(me, path.tenant_id, payload)))
      .handle("purchase", ({ path, payload }) => by((me) => acts.purchase(me, path.tenant_id, payload)))
      .handle("suspendTenant", ({ path, payload }) =>
        by((me) => acts.setTenant(me, path.tenant_id, "suspended", payload))
      )
      .handle("activateTenant", ({ path, payload }) =>
        by((me) => acts.setTenant(me, path.tenant_id, "active", payload))
      )
      .handle("suspendPerson", ({ path, payload }) =>
        by((me) => acts.setPerson(me, path.account_id, "suspended", payload))
      )
      .handle("activatePerson", ({ path, payload }) =>
        by((me) => acts.setPerson(me, path.account_id, "active", payload))
      )
      .handle("revokeKey", ({ path, urlParams }) => by((me) => acts.revokeKey(me, path.application_id, urlParams)))
      .handle("upstreams", () => answered(upstreams.list))
      .handle("costs", ({ urlParams }) => answered(upstreams.costs(urlParams)))
      .handleRaw("drift", ({ request, urlParams }) => driftIn(upstreams, request, urlParams))
      .handle("flight", () => answered(watch.flight))
      .handle("reservations", ({ urlParams }) => answered(watch.reservations(urlParams)))
      .handle("owed", () => answered(watch.owed))
      .handle("loops", () => answered(watch.work))
      .handle("verifications", () => answered(watch.verifications))
      .handle("verify", ({ payload }) => by((me) => watch.verify(me, payload.whole)))
      .handle("invariants", () => by((me) => watch.invariants(me)))
      .handle("reload", () => by((me) => reloadBy(log, reload, me)))
      .handleRaw("events", ({ request }) => live(request))
      .handle("passkeys", ({ path }) => answered(passkeysOf(acts, path.account_id)))
      .handle("deletePasskey", ({ path: { account_id, passkey_id }, urlParams }) =>
        by((me) => acts.deletePasskey(me, account_id, passkey_id, urlParams))
      )
      .handle("endSignIns", ({ path, urlParams }) => by((me) => acts.endSignIns(me, path.account_id, urlParams)))
  })
)
