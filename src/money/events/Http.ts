import { HttpApiBuilder } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Effect, Schema } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { Credentials } from "../../people/auth/Credentials.ts"
import { Credits } from "../billing/Billing.ts"
import { CurrentCaller } from "../../http/lanes/Caller.ts"
import { beatText, eventText, served } from "../../http/transport/EventStream.ts"
import { write } from "../../kernel/Decimal.ts"
import { Notification } from "../../people/notifications/Notification.ts"
import { UsageRecord } from "../usage/Usage.ts"
import { EventsApi } from "./Api.ts"
import { cursorOf, placeIn } from "./Event.ts"
import type { FeedEvent, Place } from "./Event.ts"
import { Feed } from "./Feed.ts"

const encodeRecord = Schema.encodeSync(UsageRecord)
const encodeCredits = Schema.encodeSync(Credits)
const encodeNotification = Schema.encodeSync(Notification)

const dataOf = (event: Exclude<FeedEvent, { readonly type: "beat" }>): unknown => {
  switch (event.type) {
    case "ready":
      return {}
    case "call":
      return encodeRecord(event.record)
    case "balance":
      return encodeCredits({ balance: event.balance })
    case "notification":
      return encodeNotification(event.notification)
    case "reset":
      return { reason: "too_far_behind" }
  }
}

const textOf = (event: FeedEvent, place: Place): string =>
  event.type === "beat" ? beatText : eventText(event.type, write(dataOf(event)), cursorOf(place))

export const EventsHttp = HttpApiBuilder.group(
  contract.add(EventsApi),
  "events",
  Effect.fnUntraced(function* (handlers) {
    const feed = yield* Feed
    const credentials = yield* Credentials

    const events = Effect.fnUntraced(function* (
      request: HttpServerRequest.HttpServerRequest,
      cursor: string | undefined
    ) {
      const { account_id, team_first, tenant_id } = yield* CurrentCaller
      const opened = yield* feed.open({ account_id, tenant_id, notified: !team_first })
      return yield* served(
        request,
        (stream) =>
          opened.run({
            after: placeIn(cursor, tenant_id),
            holds: Effect.isSuccess(credentials.userToken(request.headers["authorization"], "calls")),
            send: (event, place) => stream.send(textOf(event, place))
          }),
        opened.close
      )
    }, Effect.uninterruptible)

    return handlers.handleRaw("events", ({ headers, request, urlParams }) =>
      events(request, headers["last-event-id"] ?? urlParams.cursor)
    )
  })
)
