/** The form of the long-body thread's tasks. Each room defines its tasks and their results. */

/** A task. `Done` is the type of its result. */
export interface Task<Done extends object> {
  /** The name of the function that performs the task. `calls/BodyThread` lists them. */
  readonly how: string
  /** The bytes to move to the thread. They must not be empty. */
  readonly body: Uint8Array
  /** More bytes to move to the thread. */
  readonly beside?: Uint8Array | undefined
  /** Never set. It connects a task's type to its result's type. */
  readonly done?: Done
}

/** The thread could not perform a task, because its code threw an error with this message. */
export interface Failed {
  readonly failed: string
}

/** The members of an `InvalidRequest`, because an error passed to another thread would lose them. */
export interface Refusal {
  readonly message: string
  readonly field: string
  readonly rule: string
}

export const refusalOf = ({ field, message, rule }: Refusal): Refusal => ({ field, message, rule })

/** A task's result, and its buffers that move to the main thread. */
export type Outcome<Done extends object> = readonly [done: Done, moved: ReadonlyArray<Uint8Array>]

/** A thread function for any task. */
export type AnyWork = (task: never) => Outcome<object>

/** A thread function. */
export type Work<T extends Task<object>> = (task: T) => Outcome<NonNullable<T["done"]>>

/** Wraps bytes that another thread has sent. */
export const bufferOf = ({ buffer, byteLength, byteOffset }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)
