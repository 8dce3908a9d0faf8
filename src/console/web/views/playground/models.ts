/** The available models with their prices. */
import { useQuery } from "@tanstack/react-query"
import { api, responseBody } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { nano, short, usd } from "../../money.ts"
import { count } from "../../moments.ts"
import { playgroundTexts } from "../../texts/playground.ts"

export type ChatModel = Schemas["ModelEntry"]
export type MediaModel = Schemas["MediaModelEntry"]

export const useChatModels = () =>
  useQuery({
    queryKey: ["models"],
    staleTime: 300_000,
    queryFn: async () =>
      (await responseBody(api.GET("/v1/models"))).data.filter(({ protocols }) => protocols.includes("chat"))
  })

export const useMediaModels = () =>
  useQuery({
    queryKey: ["media-models"],
    staleTime: 300_000,
    queryFn: async () => (await responseBody(api.GET("/v1/tools/media/models"))).models
  })

/** Converts USD per token to USD per million tokens by shifting the decimal point, without rounding. */
const ofMillion = (price: string): string => {
  const [whole = "0", fraction = ""] = price.split(".")
  const digits = fraction.padEnd(6, "0")
  return `${whole}${digits.slice(0, 6)}.${digits.slice(6)}`
}

/** Returns whether the price is known before the call. `auto` costs as much as the model that it chooses. */
export const hasPrice = ({ pricing }: ChatModel): boolean => !pricing.prompt.startsWith("-")

export const priceText = (model: ChatModel): string =>
  hasPrice(model)
    ? playgroundTexts.priceOf(short(ofMillion(model.pricing.prompt)), short(ofMillion(model.pricing.completion)))
    : playgroundTexts.priceUnknown

export const contextText = ({ context_length }: ChatModel): string => playgroundTexts.context(count(context_length))

const charactersOfToken = 4
const tokensIn = (text: string): bigint => BigInt(Math.ceil(text.length / charactersOfToken))

/** Estimates the cost from the text lengths, in nano-USD, for display only. Returns `undefined` if the price is not known. */
export const estimateOf = (model: ChatModel, prompt: string, answer: string): bigint | undefined => {
  if (!hasPrice(model)) return undefined
  const { pricing } = model
  const ofTokens =
    tokensIn(prompt) * nano(ofMillion(pricing.prompt)) + tokensIn(answer) * nano(ofMillion(pricing.completion))
  return ofTokens / 1_000_000n + nano(pricing.request)
}

/** Returns the price of `units` at the model's defaults, in USD as a decimal string. */
export const quoteOf = ({ unit_price_usd }: MediaModel, units: number): string =>
  usd(nano(unit_price_usd) * BigInt(units))
