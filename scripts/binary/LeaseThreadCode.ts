/** Starts the lease thread in the executable. */
import { starter } from "./ThreadCode.ts"

export const start = starter("LeaseThread.js")
