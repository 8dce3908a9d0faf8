/** Builds `/openapi.json` and `/docs`. The first request for either document loads this module. */
import { HttpApi, HttpApiBuilder, OpenApi } from "@effect/platform"
// Imported by its own path, because importing the package's index would make every process load this module.
import * as HttpApiSwagger from "@effect/platform/HttpApiSwagger"
import { Context, Effect, Layer } from "effect"
import { described } from "../../http/contract/Documented.ts"
import type { LeverNote, Steered } from "../../kernel/SandboxInfo.ts"

type Contract = HttpApi.HttpApi.AnyWithProps

/** Creates the router for both documents of a contract. `server` is the base path of its routes. */
export const make = (contract: Contract, server: string, sandbox: Steered | undefined) => {
  const served = contract.annotate(OpenApi.Servers, [{ url: server }])
  const api = sandbox === undefined ? served : served.annotate(OpenApi.Transform, steered(contract, sandbox))
  const routes = Layer.mergeAll(
    HttpApiBuilder.middlewareOpenApi({ path: "/openapi.json" }),
    HttpApiSwagger.layer({ path: "/docs" })
  ).pipe(
    Layer.provide(
      Layer.succeed(HttpApi.Api, { api: api as unknown as typeof HttpApi.Api.Service.api, context: Context.empty() })
    )
  )
  return HttpApiBuilder.Router.router.pipe(
    Effect.provide(Layer.fresh(Layer.provideMerge(routes, HttpApiBuilder.Router.Live)))
  )
}

/** Adds a sandbox's levers to the document, each at the sandbox's address. */
const steered =
  (contract: Contract, { info, levers }: Steered) =>
  (written: Record<string, unknown>): Record<string, unknown> => {
    const document = described(contract)(written) as { paths: object; tags: ReadonlyArray<object> }
    const paths: Record<string, Record<string, unknown>> = {}
    for (const lever of levers) {
      const { origin } = new URL(lever.url)
      const path = lever.url.slice(origin.length)
      paths[path] = {
        ...paths[path],
        servers: [{ url: origin }],
        [lever.method.toLowerCase()]: operationOf(path, lever)
      }
    }
    const tag = {
      name: leverTag,
      description: `Levers that control this sandbox, at a separate address. ${info.control} lists them`
    }
    return { ...document, paths: { ...document.paths, ...paths }, tags: [tag, ...document.tags] }
  }

const leverTag = "sandbox levers"

const operationOf = (path: string, { body, does, query = {} }: LeverNote) => ({
  tags: [leverTag],
  summary: does,
  security: [],
  parameters: [
    ...Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => parameter("path", name!)),
    ...Object.entries(query).map(([name, example]) => ({ ...parameter("query", name), required: false, example }))
  ],
  ...(body !== undefined && {
    requestBody: { required: true, content: { "application/json": { schema: { type: "object" }, example: body } } }
  }),
  responses: { 200: { description: "Done" } }
})

const parameter = (place: "path" | "query", name: string) => ({
  name,
  in: place,
  required: true,
  schema: { type: "string" },
  description: place === "path" ? "An id from an earlier response" : "See the example"
})
