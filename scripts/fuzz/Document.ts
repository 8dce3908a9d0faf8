/** Reads the routes from the service's own document (`/openapi.json`), with their requests and documented responses. */
import type { Schema, Schemas } from "./Schema.ts"

interface Content {
  readonly schema?: Schema
  readonly example?: unknown
}

interface Operation {
  readonly parameters?: ReadonlyArray<Parameter>
  readonly security?: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Content>> }>>
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Schemas }
}

export interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly schema: Schema
  readonly example?: unknown
}

export interface Route {
  /** The method and path, as in the document. */
  readonly name: string
  readonly method: string
  readonly path: string
  readonly parameters: ReadonlyArray<Parameter>
  /** The alternative security schemes. If there are none, no credential is required. */
  readonly schemes: ReadonlyArray<string>
  readonly body: { readonly type: string; readonly schema: Schema; readonly example: unknown } | undefined
  readonly responses: Operation["responses"]
  /** Whether the document describes the route. */
  readonly documented: boolean
}

/** Undocumented paths that the service serves. */
const others = [
  "/",
  "/console",
  "/console/app.js",
  "/docs",
  "/openapi.json",
  "/transfer-invites/x",
  "/invites/x",
  "/v1",
  "/nothing"
]

export const routesOf = ({ paths }: OpenApi): ReadonlyArray<Route> => [
  ...Object.entries(paths).flatMap(([path, methods]) =>
    // A path that declares its own server belongs to the sandbox.
    "servers" in methods ? [] : Object.entries(methods).map(([method, operation]) => routeOf(path, method, operation))
  ),
  ...others.map((path) => routeOf(path, "get", { responses: {} }, false))
]

const routeOf = (path: string, method: string, operation: Operation, documented = true): Route => {
  const [content] = Object.entries(operation.requestBody?.content ?? {})
  return {
    name: `${method.toUpperCase()} ${path}`,
    method: method.toUpperCase(),
    path,
    parameters: operation.parameters ?? [],
    schemes: (operation.security ?? []).flatMap((scheme) => Object.keys(scheme)),
    body:
      content === undefined
        ? undefined
        : { type: content[0], schema: content[1].schema ?? {}, example: content[1].example },
    responses: operation.responses,
    documented
  }
}
