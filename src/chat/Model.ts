/**
 * A model that the deployment serves, at which price and from where.
 *
 * Where the specification is silent:
 * - The limit of an answer goes upstream under one name, `limit_field` of the model or of one of its upstreams. It is
 *   `max_completion_tokens` unless the configuration says otherwise: OpenAI refuses the older name for its newer models. An upstream that
 *   ignores the name that it is sent is charged up to the limit, and the log says so.
 */
import { Context } from "effect"
import type { UnitPrice } from "../kernel/Price.ts"
import type { Extra } from "./Extras.ts"

/** The name under which an upstream takes the limit of an answer; `none`: it takes no limit. */
export type LimitField = "max_completion_tokens" | "max_tokens" | "none"

export interface ModelRoute {
  /** The name of the upstream in the configuration. */
  readonly upstream: string
  /** What the upstream calls the model. */
  readonly model: string
  readonly limit_field: LimitField
}

export interface Model {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly owned_by: string
  /** Seconds since 1970; when the service started, if the configuration does not say it. */
  readonly created: number | undefined
  readonly input_modalities: ReadonlyArray<string>
  readonly output_modalities: ReadonlyArray<string>
  /** Tokens that prompt and answer may have together. */
  readonly context_length: number
  /** The longest answer it gives, in tokens. */
  readonly output_tokens_max: number
  /** What an image in a prompt counts at the most, in tokens. */
  readonly attachment_tokens_max: number
  /** What the upstream adds to a prompt at the most, in tokens: its template, its own words about tools. */
  readonly added_tokens_max: number
  readonly prompt_price: UnitPrice
  readonly completion_price: UnitPrice
  /** For each call, beside its tokens. */
  readonly request_price: UnitPrice
  /** What it serves beyond a plain request, at prices of its own. */
  readonly extras: ReadonlyArray<Extra>
  /** Tried in this order until one begins to answer. */
  readonly routes: ReadonlyArray<ModelRoute>
}

/** Whether every upstream of the model keeps to a limit of the answer. */
export const takesLimit = ({ routes }: Model): boolean => routes.every(({ limit_field }) => limit_field !== "none")

export interface Catalogue {
  readonly models: ReadonlyArray<Model>
  /** The model that stands behind `auto`, if the deployment has one. */
  readonly auto: string | undefined
}

export class Models extends Context.Tag("tollgate/chat/Models")<Models, Catalogue>() {}

/** The model that a caller names, `auto` included. */
export const findModel = ({ auto, models }: Catalogue, name: string): Model | undefined => {
  const id = name === "auto" ? auto : name
  return models.find((model) => model.id === id)
}
