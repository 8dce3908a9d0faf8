/** A model that the deployment serves, at which price and from where. */
import { Context } from "effect"
import type { UnitPrice } from "../kernel/Price.ts"

export interface ModelRoute {
  /** The name of the upstream in the configuration. */
  readonly upstream: string
  /** What the upstream calls the model. */
  readonly model: string
}

export interface Model {
  readonly id: string
  readonly name: string
  readonly description: string
  /** Tokens that prompt and answer may have together. */
  readonly context_length: number
  /** The longest answer it gives, in tokens. */
  readonly output_tokens_max: number
  /** What an image or another attachment in a prompt counts at the most, in tokens. */
  readonly attachment_tokens_max: number
  readonly prompt_price: UnitPrice
  readonly completion_price: UnitPrice
  /** Tried in this order until one begins to answer. */
  readonly routes: ReadonlyArray<ModelRoute>
}

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
