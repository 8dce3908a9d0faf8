/** The format of the catalogue file. `npm run catalogue` writes the file. Prices are in USD per million tokens, as decimal strings. */

export interface PriceFields {
  readonly prompt?: string | undefined
  readonly completion?: string | undefined
  readonly cached_prompt?: string | undefined
  readonly cached_prompt_audio?: string | undefined
  readonly cache_write?: string | undefined
  readonly cache_write_1h?: string | undefined
  readonly prompt_audio?: string | undefined
  readonly prompt_image?: string | undefined
  readonly reasoning?: string | undefined
  readonly completion_audio?: string | undefined
  readonly completion_image?: string | undefined
}

export interface Price extends PriceFields {
  readonly prompt: string
  readonly completion: string
  readonly long_context?: ReadonlyArray<PriceFields & { readonly above_prompt_tokens: number }> | undefined
}

/** A vendor's model. Missing values are unknown. */
export interface Stored {
  readonly name: string
  readonly context_length?: number | undefined
  readonly max_output_tokens?: number | undefined
  /** If absent, the model accepts only text. */
  readonly input_modalities?: readonly ["text", "image"] | undefined
  readonly limit_field?: "max_tokens" | undefined
  /** The maximum numbers of tokens that the vendor adds to a prompt: for its template, for tools, and for each image. */
  readonly max_added_tokens?: number | undefined
  readonly max_tool_tokens?: number | undefined
  readonly max_attachment_tokens?: number | undefined
  readonly price?: Price | undefined
  /** Another source's prices, if they differ. */
  readonly differs?: PriceFields | undefined
}

export interface Vendor {
  /** The host of the vendor's API. */
  readonly host?: string | undefined
  /** The models, by the vendor's name for them. */
  readonly models: { readonly [id: string]: Stored }
}

export interface CatalogueDocument {
  /** The UTC day of the prices. */
  readonly day: string
  readonly sources: ReadonlyArray<{ readonly package: string; readonly version: string; readonly licence: string }>
  readonly vendors: { readonly [vendor: string]: Vendor }
}
