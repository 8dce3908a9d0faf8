/** The content encodings that a client accepts. */
import type { HttpServerRequest } from "@effect/platform"

export type Encoding = "br" | "gzip"

/** Returns the encodings that the client accepts, in the service's order of preference. */
export const encodingsOf = ({
  headers
}: Pick<HttpServerRequest.HttpServerRequest, "headers">): ReadonlyArray<Encoding> => {
  const taken = (headers["accept-encoding"] ?? "").split(",").map((one) => one.replaceAll(" ", "").toLowerCase())
  const takes = (name: Encoding) => taken.some((one) => one === name || (one.startsWith(`${name};`) && !refuses(one)))
  return (["br", "gzip"] as const).filter(takes)
}

const refuses = (one: string): boolean => /;q=0(?:\.0*)?$/.test(one)
