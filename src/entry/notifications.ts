/** `tollgate/notifications`: what an account is told inside the service. */
import { Notifications } from "../notifications/Notifications.ts"
import "./contracts.ts"

export { Notifications }
export * from "../notifications/Problems.ts"

/** Needs a database. */
export const layer = Notifications.layer
