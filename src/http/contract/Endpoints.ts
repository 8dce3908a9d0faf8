/** The endpoints of a contract, with their annotations and middleware. */
import type { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiMiddleware } from "@effect/platform"
import { Context } from "effect"

export interface Endpoint {
  readonly group: HttpApiGroup.HttpApiGroup.AnyWithProps
  readonly endpoint: HttpApiEndpoint.HttpApiEndpoint.AnyWithProps
  /** The annotations of the contract, the group and the endpoint. */
  readonly annotations: Context.Context<never>
  /** The middleware of the group and the endpoint. */
  readonly middleware: ReadonlySet<HttpApiMiddleware.TagClassAny>
}

/** Lists the endpoints. `HttpApi.reflect` would also analyze all response schemas, which takes a tenth of the startup time. */
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
