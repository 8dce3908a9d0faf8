/** What the deployment calls itself: the name in its texts, the prefix of its keys, and where people reach it. */
import { Context } from "effect"

export class ServiceInfo extends Context.Reference<ServiceInfo>()("tollgate/kernel/ServiceInfo", {
  defaultValue: () => ({ service_name: "Tollgate", key_prefix: "svc", public_url: "http://127.0.0.1:8787" })
}) {}
