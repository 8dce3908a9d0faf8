import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { Caller } from "../http/Caller.ts"
import { envelope } from "../kernel/Envelope.ts"
import { Notifications } from "./Notifications.ts"

export const NotificationsHttp = HttpApiBuilder.group(
  Api,
  "notifications",
  Effect.fnUntraced(function* (handlers) {
    const notifications = yield* Notifications
    return handlers
      .handle("notifications", ({ urlParams }) =>
        Effect.flatMap(Caller, ({ account_id }) => Effect.map(notifications.list(account_id, urlParams), envelope))
      )
      .handle("readNotification", ({ path }) =>
        Effect.flatMap(Caller, ({ account_id }) => Effect.map(notifications.read(account_id, path.id), envelope))
      )
  })
)
