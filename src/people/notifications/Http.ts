import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { NotificationsApi } from "./Api.ts"
import { Notifications } from "./Notifications.ts"

export const NotificationsHttp = HttpApiBuilder.group(
  contract.add(NotificationsApi),
  "notifications",
  Effect.fnUntraced(function* (handlers) {
    const notifications = yield* Notifications
    return handlers
      .handle("notifications", ({ urlParams }) => answer((caller) => notifications.list({ caller, ...urlParams })))
      .handle("readNotifications", ({ payload }) => answer((caller) => notifications.readAll({ caller, ...payload })))
      .handle("readNotification", ({ path }) => answer((caller) => notifications.read({ caller, id: path.id })))
  })
)
