import { TenantId } from "../../kernel/Ids.ts"
import { Problem } from "../../kernel/Problem.ts"

export class ExportInProgress extends Problem<ExportInProgress>()("ExportInProgress", {
  status: 429,
  error: "another export of this tenant is in progress; wait until it ends",
  code: "export_in_progress",
  fields: { tenant_id: TenantId },
  details: {}
}) {}

export class ExportsBusy extends Problem<ExportsBusy>()("ExportsBusy", {
  status: 503,
  error: "too many exports are in progress; try again later",
  code: "busy"
}) {}
