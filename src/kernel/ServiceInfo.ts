/** The deployment's identity: `service_name` and `public_url` in the configuration file, and the prefix of its API keys. */
import { Context, Layer, Schema } from "effect"
import { Address, NonEmpty } from "./Setting.ts"

export interface ServiceFacts {
  /** The name shown to users. */
  readonly service_name: string
  /** The prefix of API keys: letters and digits. */
  readonly key_prefix: string
  /** The public URL of the service, without a trailing slash. It is the base of links in emails and the issuer of tokens. */
  readonly public_url: string
}

export class ServiceInfo extends Context.Tag("tollgate/kernel/ServiceInfo")<ServiceInfo, ServiceFacts>() {
  static readonly layer = (facts: ServiceFacts) =>
    Layer.succeed(ServiceInfo, { ...facts, public_url: facts.public_url.replace(/\/+$/, "") })
}

/**
 * The path of the routes for a browser, without a trailing slash. It is independent of the host name. If a proxy removes a path prefix, `public_url`
 * contains it. `prefix` is the service's path in a server that mounts it.
 */
export const pathTo = (prefix: string, public_url: string): string =>
  new URL(public_url).pathname.replace(/\/+$/, "") || prefix

export const fields = {
  service_name: Schema.optional(NonEmpty),
  /** The public URL of the service, the base of links in emails. */
  public_url: Schema.optional(Address)
}
