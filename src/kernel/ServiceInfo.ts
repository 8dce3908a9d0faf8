/** The facts that identify the deployment: `service_name` and `public_url` from the configuration file, and the API key prefix. */
import { Context, Layer, Schema } from "effect"
import { Address, NonEmpty } from "./Setting.ts"

export interface ServiceFacts {
  /** The name shown to users. */
  readonly service_name: string
  /** The prefix of API keys. It must consist of letters and digits. */
  readonly key_prefix: string
  /** The service's public URL, without a trailing slash. Links in emails begin with it, and tokens name it as their issuer. */
  readonly public_url: string
}

export class ServiceInfo extends Context.Tag("tollgate/kernel/ServiceInfo")<ServiceInfo, ServiceFacts>() {
  static readonly layer = (facts: ServiceFacts) =>
    Layer.succeed(ServiceInfo, { ...facts, public_url: facts.public_url.replace(/\/+$/, "") })
}

/**
 * Returns the base path of the routes as a browser sees it, without a host name or trailing slash. If a proxy strips a path prefix, `public_url`
 * contains that prefix. `prefix` is the path where a server mounts the service.
 */
export const pathTo = (prefix: string, public_url: string): string =>
  new URL(public_url).pathname.replace(/\/+$/, "") || prefix

export const fields = {
  service_name: Schema.optional(NonEmpty),
  public_url: Schema.optional(Address)
}
