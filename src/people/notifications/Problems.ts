import { Schema } from "effect"
import { Problem } from "../../kernel/Problem.ts"

export class NotificationNotFound extends Problem<NotificationNotFound>()("NotificationNotFound", {
  status: 404,
  error: "there is no such notification",
  code: "notification_not_found",
  fields: { id: Schema.String },
  details: {}
}) {}
