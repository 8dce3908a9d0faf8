/** Routes for notifications. */
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example } from "../../http/contract/Documented.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { OrganizationToken } from "../credentials/Security.ts"
import { Envelope } from "../../kernel/Envelope.ts"
import { PageQuery } from "../../kernel/Page.ts"
import {
  Notification,
  NotificationId,
  NotificationPage,
  NotificationsMarked,
  NotificationsRead
} from "./Notification.ts"
import { NotificationNotFound } from "./Problems.ts"

export class NotificationsApi extends HttpApiGroup.make("notifications")
  .add(
    HttpApiEndpoint.get("notifications", "/v1/notifications")
      .setUrlParams(Schema.Struct(PageQuery))
      .addSuccess(Envelope(NotificationPage))
      .addError(InvalidRequest)
      .annotate(OpenApi.Summary, "List my notifications, newest first")
  )
  .add(
    HttpApiEndpoint.post("readNotifications", "/v1/notifications/read")
      .setPayload(NotificationsRead)
      .addSuccess(Envelope(NotificationsMarked))
      .addError(InvalidRequest)
      .annotate(Example, { body: {} })
      .annotate(OpenApi.Summary, "Mark all my notifications as read, or all up to an id")
  )
  .add(
    HttpApiEndpoint.post("readNotification", "/v1/notifications/:id/read")
      .setPath(Schema.Struct({ id: NotificationId }))
      .addSuccess(Envelope(Notification))
      .addError(NotificationNotFound)
      .annotate(OpenApi.Summary, "Mark one notification as read")
  )
  .middleware(OrganizationToken) {}
