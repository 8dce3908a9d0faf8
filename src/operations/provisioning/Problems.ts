import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

export class ExternalIdNotFound extends Problem<ExternalIdNotFound>()("ExternalIdNotFound", {
  status: 404,
  error: "no resource has this external id",
  code: "external_id_not_found",
  fields: { external_id: Schema.String },
  details: {}
}) {}

/** The external id belongs to a person, tenant or key other than the one in the request. */
export class ExternalIdUsed extends Problem<ExternalIdUsed>()("ExternalIdUsed", {
  status: 409,
  error: "this external id belongs to another resource; remove that resource first, or use another external id",
  code: "external_id_used",
  fields: { external_id: Schema.String }
}) {}

/** The tenant has no active owner, or the person is not an active member of the tenant. */
export class NoHolder extends Problem<NoHolder>()("NoHolder", {
  status: 409,
  error: "no active member of this tenant can hold the key",
  code: "no_holder",
  fields: { tenant_id: Schema.String }
}) {}
