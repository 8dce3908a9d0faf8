/** Refusals of provisioning. */
import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

export class ExternalIdNotFound extends Problem<ExternalIdNotFound>()("ExternalIdNotFound", {
  status: 404,
  error: "no resource has this external id",
  code: "external_id_not_found",
  fields: { external_id: Schema.String },
  details: {}
}) {}

/** The external id belongs to another person, tenant or key than the one in the request. */
export class ExternalIdUsed extends Problem<ExternalIdUsed>()("ExternalIdUsed", {
  status: 409,
  error: "this external id belongs to another resource: remove it first, or use another external id",
  code: "external_id_used",
  fields: { external_id: Schema.String }
}) {}

/** The key's tenant has no active owner, or the key's person is not an active member of its tenant. */
export class NoHolder extends Problem<NoHolder>()("NoHolder", {
  status: 409,
  error: "no active member of this tenant can hold the key",
  code: "no_holder",
  fields: { tenant_id: Schema.String }
}) {}
