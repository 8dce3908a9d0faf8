/** `tollgate/notifications`: notifications of an account inside the service. */
import { Notifications } from "../../people/notifications/Notifications.ts"
import "./contracts.ts"

export { Notifications }
export * from "../../people/notifications/Problems.ts"

/** Needs a database. */
export const layer = Notifications.layer
