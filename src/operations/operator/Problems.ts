import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

export class TenantNotFound extends Problem<TenantNotFound>()("TenantNotFound", {
  status: 404,
  error: "tenant not found",
  code: "tenant_not_found",
  fields: { tenant_id: Schema.String },
  details: {}
}) {}

export class ReferenceUsed extends Problem<ReferenceUsed>()("ReferenceUsed", {
  status: 409,
  error: "this reference was already used for another amount or tenant",
  code: "reference_used",
  fields: { reference: Schema.String }
}) {}

export class BalanceBeyondBooks extends Problem<BalanceBeyondBooks>()("BalanceBeyondBooks", {
  status: 422,
  error: "the balance would exceed the ledger's maximum",
  code: "balance_too_large"
}) {}

/** A closed account can be neither suspended nor activated. */
export class TenantClosed extends Problem<TenantClosed>()("TenantClosed", {
  status: 409,
  error: "the tenant's billing account is closed",
  code: "tenant_closed"
}) {}

/** The configuration is missing or invalid. The service continues to run unchanged. */
export class ReloadRefused extends Problem<ReloadRefused>()("ReloadRefused", {
  status: 422,
  error: "the configuration was refused; nothing has changed",
  code: "configuration_refused"
}) {}

export class AlreadyRunning extends Problem<AlreadyRunning>()("AlreadyRunning", {
  status: 409,
  error: "a check is already running; wait for its result",
  code: "already_running"
}) {}
