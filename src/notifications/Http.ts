import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { answer } from "../http/Answer.ts"
import { Notifications } from "./Notifications.ts"

export const NotificationsHttp = HttpApiBuilder.group(
  Api,
  "notifications",
  Effect.fnUntraced(function* (handlers) {
    const notifications = yield* Notifications
    return handlers
      .handle("notifications", ({ urlParams }) => answer(({ account_id }) => notifications.list(account_id, urlParams)))
      .handle("readNotification", ({ path }) => answer(({ account_id }) => notifications.read(account_id, path.id)))
  })
)
