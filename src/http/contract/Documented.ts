/**
 * Completes the OpenAPI document with information that schemas cannot express: working examples, the headers of metered routes and the required
 * scopes. Contracts annotate their endpoints, and `described` adds the annotations to the document.
 */
import { HttpApi } from "@effect/platform"
import { Context } from "effect"
import { RefusalShape } from "./Annotations.ts"
import type { Shape } from "./Annotations.ts"

/** A request that succeeds. `{name}` stands for a value that only the caller knows, such as a token or an id from an earlier response. */
export class Example extends Context.Reference<Example>()("tollgate/http/Example", {
  defaultValue: (): ExampleOf => ({})
}) {}

export interface ExampleOf {
  readonly body?: unknown
  readonly query?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, unknown>>
}

/**
 * Marks a metered route. With `charge_known`, the charge is known before the response begins and is sent in a response header. With `says_record`, a
 * header contains the usage record's id even if the response does not stream.
 */
export class Metered extends Context.Reference<Metered>()("tollgate/http/Metered", {
  defaultValue: (): { readonly charge_known: boolean; readonly says_record?: boolean } | undefined => undefined
}) {}

/** Marks a route whose response is an event stream if the request contains `stream: true`. */
export class Streams extends Context.Reference<Streams>()("tollgate/http/Streams", { defaultValue: () => false }) {}

/** The content types of the response, if a request can choose between several. */
export class Produces extends Context.Reference<Produces>()("tollgate/http/Produces", {
  defaultValue: (): ReadonlyArray<string> => []
}) {}

/** Marks a route for browsers. The route responds with pages and redirects, and even its refusals are pages. */
export class Browsed extends Context.Reference<Browsed>()("tollgate/http/Browsed", { defaultValue: () => false }) {}

const idempotencyKey = {
  name: "Idempotency-Key",
  in: "header" as const,
  schema: { type: "string" as const, pattern: "^[A-Za-z0-9_-]{16,128}$" },
  required: false,
  description:
    "Makes retries safe: a request repeated with the same key is not run again but gets the first response. A key belongs to the " +
    "caller's account in the tenant."
}

const tags = {
  name: "X-Tags",
  in: "header" as const,
  schema: { type: "string" as const, example: "project=atlas,run=42" },
  required: false,
  description:
    "Tags for usage and budgets: up to 8 `name=value` pairs. Names consist of letters, digits, `_`, `.` and `-`; values have up to 128 characters."
}

const charge = {
  "X-Charge-Usd": {
    description: "The charge for the call, in USD",
    schema: { type: "string", example: "0.000042" }
  }
}

/** The header with the usage record's id. For a streamed response, only this record contains the charge. */
const usage = {
  "X-Usage-Id": {
    description: "The id of the call's usage record; a stream writes the record when it ends",
    schema: { type: "string" }
  }
}

/** The header of the routes that are served by models. Only these routes can stream. */
const fallback = {
  "X-Fallback-Model": {
    description:
      "The percent-encoded name of the model that served the call in place of the requested model; absent otherwise",
    schema: { type: "string" },
    required: false
  }
}

/** Returns the call's rate limit headers for the unit. They are absent if no budget limits the unit. */
const rates = (unit: "Requests" | "Tokens") => ({
  [`X-RateLimit-Limit-${unit}`]: optional(
    `The limit of the call's budget with the fewest ${unit.toLowerCase()} left`,
    "integer"
  ),
  [`X-RateLimit-Remaining-${unit}`]: optional(
    `The ${unit.toLowerCase()} left in that budget after this call`,
    "integer"
  ),
  [`X-RateLimit-Reset-${unit}`]: optional(
    "Time until that budget resets, such as `1m30s`; absent if it never resets",
    "string"
  )
})

/** Returns the call's rate limit headers in Anthropic's protocol. */
const anthropicRates = (unit: "Requests" | "Tokens") => ({
  [`Anthropic-RateLimit-${unit}-Limit`]: optional(
    `The limit of the call's budget with the fewest ${unit.toLowerCase()} left`,
    "integer"
  ),
  [`Anthropic-RateLimit-${unit}-Remaining`]: optional(
    `The ${unit.toLowerCase()} left in that budget after this call`,
    "integer"
  ),
  [`Anthropic-RateLimit-${unit}-Reset`]: optional("When that budget resets; absent if it never resets", "string")
})

const optional = (description: string, type: "integer" | "string") => ({
  description,
  schema: { type },
  required: false
})

const openAiRates = { ...rates("Requests"), ...rates("Tokens") }
const messagesRates = { ...anthropicRates("Requests"), ...anthropicRates("Tokens") }

/** Refers to headers of the document's components. */
const referring = (headers: object) =>
  Object.fromEntries(Object.keys(headers).map((name) => [name, { $ref: `#/components/headers/${name}` }]))

const ratesFor = (shape: Shape | undefined) => ({
  ...referring(openAiRates),
  ...(shape?.rateHeaders !== undefined && referring(messagesRates))
})

/** The statuses of an admitted call, and of a refusal by a budget. */
const ratedStatuses = ["200", "400", "402", "429", "500", "503"]

/** Adds the rate limit headers to the responses that carry them. */
const rated = ({ responses }: Operation, shape: Shape | undefined): void => {
  for (const status of ratedStatuses) {
    const response = responses[status]
    if (response !== undefined) response.headers = { ...response.headers, ...ratesFor(shape) }
  }
}

type Content = Record<string, { schema: JsonSchema; example?: unknown }>

interface JsonSchema {
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly type?: string
  readonly $ref?: string
}

interface Operation {
  parameters: Array<{ readonly name: string; readonly required?: boolean }>
  security: Array<Record<string, ReadonlyArray<string>>>
  readonly responses: Record<string, { description?: string; headers?: object; content?: Content }>
  readonly requestBody?: { readonly content: Content }
}

interface Document {
  readonly components: { readonly schemas: Record<string, unknown>; headers?: object }
  readonly paths: Record<string, Record<string, Operation>>
}

/** Creates the `OpenApi.Transform` that adds the annotations to the contract's document. */
export const described =
  (api: HttpApi.HttpApi.Any) =>
  (written: Record<string, unknown>): Record<string, unknown> => {
    const { components, paths } = written as unknown as Document
    components.headers = { ...openAiRates, ...messagesRates }
    HttpApi.reflect(api as never, {
      onGroup: () => {},
      onEndpoint: ({ endpoint, mergedAnnotations, middleware }) => {
        const path = endpoint.path.replace(/:(\w+)\??/g, "{$1}")
        const operation = paths[path]?.[endpoint.method.toLowerCase()]
        if (operation === undefined) return
        refusals(operation)
        if (operation.requestBody !== undefined) bodyRefusals(operation)
        if (Context.get(mergedAnnotations, Browsed)) browsed(operation)
        produced(operation, Context.get(mergedAnnotations, Produces))
        if (Context.get(mergedAnnotations, Streams)) stream(operation)
        const key = operation.parameters.findIndex(({ name }) => name === "idempotency-key")
        // A route that declares the header in its own schema requires it.
        if (key !== -1) operation.parameters[key] = { ...idempotencyKey, required: true }
        const metered = Context.get(mergedAnnotations, Metered)
        const shape = Context.get(mergedAnnotations, RefusalShape)
        if (metered !== undefined) {
          operation.parameters.push(tags)
          if (endpoint.method === "POST") operation.parameters.push(idempotencyKey)
          if (metered.charge_known) {
            const says = metered.says_record === true || Context.get(mergedAnnotations, Streams)
            const answers = Context.get(mergedAnnotations, Streams) ? { ...usage, ...fallback } : usage
            operation.responses["200"]!.headers = says ? { ...charge, ...answers } : charge
          }
          rated(operation, shape)
        }
        for (const tag of middleware) {
          if ("demand" in tag) demand(operation, String(tag.demand))
        }
        exemplify(operation, Context.get(mergedAnnotations, Example))
        if (shape !== undefined) reshape(operation, shape, components.schemas)
      }
    })
    return open(written) as Record<string, unknown>
  }

/** Removes `additionalProperties: false`, because routes ignore unknown properties or pass them on to the model. */
const open = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(open)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, inner]) => key !== "additionalProperties" || inner !== false)
      .map(([key, inner]) => [key, open(inner)])
  )
}

const decodeError = "#/components/schemas/HttpApiDecodeError"
const invalidRequest = { $ref: "#/components/schemas/InvalidRequest" }

/** Replaces the platform's errors about invalid input with `InvalidRequest`. */
const refusals = ({ parameters, requestBody, responses }: Operation): void => {
  const body = responses["400"]?.content?.["application/json"]
  if (body === undefined) return
  const others = (body.schema.anyOf ?? [body.schema]).filter(({ $ref }) => $ref !== decodeError)
  const takes = parameters.length > 0 || requestBody !== undefined
  const all = takes && !others.some(({ $ref }) => $ref === invalidRequest.$ref) ? [invalidRequest, ...others] : others
  if (all.length === 0) delete responses["400"]
  else responses["400"] = { ...responses["400"], content: { "application/json": { schema: oneOf(all) } } }
}

/**
 * Adds the refusals that a body can cause before its route reads it: the body is too slow, too large or in an unsupported encoding, or exceeds the
 * free byte budget.
 */
const bodyRefusals = ({ responses }: Operation): void => {
  for (const [status, name] of [
    ["408", "BodyTooSlow"],
    ["413", "PayloadTooLarge"],
    ["415", "UnsupportedEncoding"],
    ["503", "Busy"]
  ] as const) {
    const $ref = `#/components/schemas/${name}`
    const { content, ...response } = (responses[status] ??= { description: name })
    const schema = content?.["application/json"]?.schema
    const all = schema === undefined ? [] : (schema.anyOf ?? [schema])
    if (all.some((one) => one.$ref === $ref)) continue
    responses[status] = { ...response, content: { "application/json": { schema: oneOf([...all, { $ref }]) } } }
  }
}

const produced = ({ responses }: Operation, types: ReadonlyArray<string>): void => {
  const content = responses["200"]?.content
  const [usual] = Object.values(content ?? {})
  if (content !== undefined && usual !== undefined)
    for (const type of types) content[type] ??= type.startsWith("text/") ? { schema: { type: "string" } } : usual
}

const page = { "text/html": { schema: { type: "string" } } }

const browsed = ({ responses }: Operation): void => {
  responses["303"] = { description: "Redirects the browser", headers: { Location: { schema: { type: "string" } } } }
  const { content, description = "A page that describes the problem" } = responses["400"] ?? {}
  // If a path parameter cannot be decoded, the refusal is still JSON.
  responses["400"] = { description, content: { ...content, ...page } }
  responses["429"] ??= { description: "A page about the rate limit", content: page }
}

/** Documents the plain-text alternative of a response as an event stream. */
const stream = ({ responses }: Operation): void => {
  const answer = responses["200"]!
  const whole = (answer.content?.["application/json"]?.schema.anyOf ?? []).filter(({ type }) => type !== "string")
  answer.content = {
    "application/json": { schema: oneOf(whole) },
    "text/event-stream": { schema: { type: "string" } }
  }
}

const oneOf = (schemas: ReadonlyArray<JsonSchema>): JsonSchema =>
  schemas.length === 1 ? schemas[0]! : { anyOf: schemas }

const exemplify = (operation: Operation, { body, headers = {}, query = {} }: ExampleOf): void => {
  for (const content of Object.values(operation.requestBody?.content ?? {})) {
    if (body !== undefined) content.example = body
  }
  for (const parameter of operation.parameters) {
    const example = { ...query, ...headers }[parameter.name]
    if (example !== undefined) Object.assign(parameter, { example })
  }
}

/** Gives every refusal the format of the endpoint's protocol. */
const reshape = ({ responses }: Operation, { identifier, schema }: Shape, schemas: Record<string, unknown>): void => {
  schemas[identifier] = schema
  for (const [status, response] of Object.entries(responses)) {
    if (Number(status) >= 400)
      response.content = { "application/json": { schema: { $ref: `#/components/schemas/${identifier}` } } }
  }
}

/** Adds the scope that an application's token must have. `profile` and `sign_in` require none. */
const demand = (operation: Operation, scope: string): void => {
  operation.security = operation.security.map((requirement) =>
    Object.fromEntries(
      Object.keys(requirement).map((scheme) => [scheme, scope === "profile" || scope === "sign_in" ? [] : [scope]])
    )
  )
}
