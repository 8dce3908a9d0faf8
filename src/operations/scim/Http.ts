/** Handlers for SCIM. Responses use SCIM's media type. */
import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import type { HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { storable } from "../../http/lanes/Answer.ts"
import { parse } from "../../http/transport/Json.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { ScimApi } from "./Api.ts"
import * as Descriptions from "./Descriptions.ts"
import * as Group from "./Group.ts"
import type { StoredGroup } from "./Group.ts"
import { InvalidValue } from "./Problems.ts"
import { isBody, listed } from "./Resource.ts"
import type { Body, Resource } from "./Resource.ts"
import { Scim } from "./Scim.ts"
import * as User from "./User.ts"

type Request = HttpServerRequest.HttpServerRequest

const answered = (resource: Resource, status = 200) =>
  HttpServerResponse.text(JSON.stringify(resource), {
    status,
    contentType: "application/scim+json",
    ...(status === 201 && { headers: { location: locationOf(resource) } })
  })

const locationOf = ({ meta }: Resource): string => (meta as { readonly location: string }).location

const noContent = HttpServerResponse.empty({ status: 204 })

/** Reads the body without checking its media type, because directories send various types. */
const bodyOf = (request: Request): Effect.Effect<Body, InvalidValue> =>
  Effect.flatMap(Effect.orDie(request.text), (text) =>
    Effect.mapError(parse(Buffer.from(text)), () => new InvalidValue({ message: "the body must be a JSON object" }))
  ).pipe(
    Effect.flatMap((body) =>
      isBody(body) ? Effect.succeed(body) : new InvalidValue({ message: "the body must be a JSON object" })
    )
  )

const isExcluded = ({ excludedAttributes = "" }: { readonly excludedAttributes?: string | undefined }): boolean =>
  excludedAttributes.split(",").some((name) => name.trim().toLowerCase() === "members")

export const ScimHttp = HttpApiBuilder.group(
  contract.add(ScimApi),
  "scim",
  Effect.fnUntraced(function* (handlers) {
    const { groups, users } = yield* Scim
    const { public_url } = yield* ServiceInfo
    const base = `${public_url}/scim/v2`
    const user = (one: User.StoredUser, status?: number) => answered(User.shown(one, base), status)
    const group = (one: StoredGroup, status?: number) => answered(Group.shown(one, base, true), status)

    return handlers
      .handleRaw("serviceProviderConfig", () => Effect.succeed(answered(Descriptions.serviceProviderConfig(base))))
      .handleRaw("resourceTypes", () => Effect.succeed(answered(Descriptions.resourceTypes(base))))
      .handleRaw("schemas", () => Effect.succeed(answered(Descriptions.schemas(base))))
      .handleRaw("users", ({ urlParams }) =>
        Effect.map(users.list(urlParams), ({ found, ...page }) =>
          answered(listed({ ...page, resources: found.map((one) => User.shown(one, base)) }))
        )
      )
      .handleRaw("createUser", ({ request }) =>
        storable(Effect.map(Effect.flatMap(bodyOf(request), users.create), (one) => user(one, 201)))
      )
      .handleRaw("user", ({ path }) => Effect.map(users.find(path.id), (one) => user(one)))
      .handleRaw("replaceUser", ({ path, request }) =>
        storable(
          Effect.map(
            Effect.flatMap(bodyOf(request), (body) => users.replace(path.id, body)),
            (one) => user(one)
          )
        )
      )
      .handleRaw("patchUser", ({ path, request }) =>
        storable(
          Effect.map(
            Effect.flatMap(bodyOf(request), (body) => users.patch(path.id, body)),
            (one) => user(one)
          )
        )
      )
      .handleRaw("removeUser", ({ path }) => storable(Effect.as(users.remove(path.id), noContent)))
      .handleRaw("groups", ({ urlParams }) =>
        Effect.map(groups.list(urlParams), ({ found, ...page }) =>
          answered(listed({ ...page, resources: found.map((one) => Group.shown(one, base, !isExcluded(urlParams))) }))
        )
      )
      .handleRaw("createGroup", ({ request }) =>
        storable(Effect.map(Effect.flatMap(bodyOf(request), groups.create), (one) => group(one, 201)))
      )
      .handleRaw("group", ({ path, urlParams }) =>
        Effect.map(groups.find(path.id), (one) => answered(Group.shown(one, base, !isExcluded(urlParams))))
      )
      .handleRaw("replaceGroup", ({ path, request }) =>
        storable(
          Effect.map(
            Effect.flatMap(bodyOf(request), (body) => groups.replace(path.id, body)),
            (one) => group(one)
          )
        )
      )
      .handleRaw("patchGroup", ({ path, request }) =>
        storable(
          Effect.map(
            Effect.flatMap(bodyOf(request), (body) => groups.patch(path.id, body)),
            (one) => group(one)
          )
        )
      )
      .handleRaw("removeGroup", ({ path }) => storable(Effect.as(groups.remove(path.id), noContent)))
  })
)
