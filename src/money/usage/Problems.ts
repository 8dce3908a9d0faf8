import { Schema } from "effect"
import { TenantId } from "../../kernel/Ids.ts"
import { Problem } from "../../kernel/Problem.ts"

export class InvalidStartTime extends Problem<InvalidStartTime>()("InvalidStartTime", {
  status: 400,
  error: "Invalid start_time format",
  details: { field: "start_time", rule: "must be an RFC 3339 date and time" }
}) {}

export class InvalidEndTime extends Problem<InvalidEndTime>()("InvalidEndTime", {
  status: 400,
  error: "Invalid end_time format",
  details: { field: "end_time", rule: "must be an RFC 3339 date and time" }
}) {}

export class InvalidRollup extends Problem<InvalidRollup>()("InvalidRollup", {
  status: 400,
  error: "Invalid rollup value (must be 'daily', 'monthly', or 'annual')",
  details: { field: "rollup", rule: "must be daily, monthly or annual" }
}) {}

export class TeamPlanRequired extends Problem<TeamPlanRequired>()("TeamPlanRequired", {
  status: 403,
  error: "team usage requires an active team plan",
  code: "team_plan_required",
  fields: { tenant_id: TenantId },
  details: {}
}) {}

/** The record does not exist, or the credential's tenant neither made the call nor paid for it. */
export class UsageNotFound extends Problem<UsageNotFound>()("UsageNotFound", {
  status: 404,
  error: "no such usage record",
  code: "usage_not_found",
  fields: { usage_id: Schema.String },
  details: {}
}) {}
