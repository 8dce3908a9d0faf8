/** `tollgate/notifications`: the notifications that an account receives inside the service. */
import { Notifications } from "../../people/notifications/Notifications.ts"
import "./contracts.ts"

export { Notifications }
export * from "../../people/notifications/Problems.ts"

/** The notifications of accounts. Requires a database. */
export const layer = Notifications.layer
