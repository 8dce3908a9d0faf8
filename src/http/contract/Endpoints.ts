/** The endpoints of a contract, each with what holds for it. */
import type { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware } from "@effect/platform"
import { Context } from "effect"

export interface Endpoint {
  readonly group: HttpApiGroup.HttpApiGroup.AnyWithProps
  readonly endpoint: HttpApiEndpoint.HttpApiEndpoint.AnyWithProps
  /** The contract's, its group's and its own. */
  readonly annotations: Context.Context<never>
  /** Its group's and its own. */
  readonly middleware: ReadonlySet<HttpApiMiddleware.TagClassAny>
}

/** `HttpApi.reflect` takes the schemas of all answers apart as well, which takes a tenth of a start. */
export const endpointsOf = (api: HttpApi.HttpApi.AnyWithProps): ReadonlyArray<Endpoint> =>
  Object.values(api.groups).flatMap((group) => {
    const shared = Context.merge(api.annotations, group.annotations)
    return Object.values(group.endpoints).map((endpoint) => ({
      group,
      endpoint,
      annotations: Context.merge(shared, endpoint.annotations),
      middleware: new Set([...group.middlewares, ...endpoint.middlewares])
    }))
  })
