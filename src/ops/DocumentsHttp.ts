/** What describes the service to whoever calls it: `/openapi.json` for machines, `/docs` for people. */
import { HttpApi, HttpApiBuilder, HttpApiSwagger, OpenApi } from "@effect/platform"
import { Context, Effect, Layer } from "effect"
import { Api } from "../Api.ts"
import { Brand } from "../Brand.ts"

/** Both, for a service whose routes begin behind `prefix`. */
export const documents = (prefix: "" | `/${string}`) =>
  Layer.unwrapEffect(
    Effect.map(Brand, ({ public_url }) => {
      const api = Api.annotate(OpenApi.Servers, [{ url: serverOf(prefix, public_url) }])
      return Layer.mergeAll(
        HttpApiBuilder.middlewareOpenApi({ path: "/openapi.json" }),
        HttpApiSwagger.layer({ path: "/docs" })
      ).pipe(
        Layer.provide(
          Layer.succeed(HttpApi.Api, {
            api: api as unknown as typeof HttpApi.Api.Service.api,
            context: Context.empty()
          })
        )
      )
    })
  )

/**
 * Where the routes begin, relative to the address that the document was read from; so it holds by whatever name the service is
 * reached. A proxy that takes a path away in front of it is known by the path of `public_url`.
 */
const serverOf = (prefix: string, public_url: string): string => {
  const { pathname } = new URL(public_url)
  return pathname === "/" ? prefix || "/" : pathname.replace(/\/$/, "")
}
