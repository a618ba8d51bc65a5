/**
 * Makes the container of a spec. The name is the idempotency key: where the connection breaks during create the engine may
 * or may not have made it, so it is looked up by name and taken over if its labels are this attempt's.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Container, ContainerInspectInfo } from "dockerode";
import type { Failure } from "../../model/failure.ts";
import { err, ok, type Result } from "../../util/result.ts";
import type { CreatedSandbox, SandboxSpec } from "../sandbox.ts";
import { findBlockDevice } from "./block-device.ts";
import { buildCreateBody, sandboxLabels } from "./create-body.ts";
import { isGone, isUnreachable, messageOf, statusOf } from "./engine-client.ts";
import type { EngineContext } from "./engine-context.ts";
import { makeOwnGroup } from "./own-group.ts";
import { removeContainer } from "./remove-container.ts";
import { seccompOption } from "./seccomp-profile.ts";
import { type Placement, startSandbox } from "./start-sandbox.ts";

const LOOK_AGAIN_MS = 250;

export async function createSandbox(
  context: EngineContext,
  spec: SandboxSpec,
): Promise<Result<CreatedSandbox, Failure>> {
  const { client } = context;
  const device =
    spec.ioDevicePath === null ? null : await findBlockDevice(spec.ioDevicePath).catch(() => null);
  const ownGroup = context.hasOwnGroups ? makeOwnGroup(spec.name, spec.caps.pids, context.hierarchies) : null;
  let container: Container | null = null;
  try {
    const image = await context.findImage(spec.image);
    if (image === null) return err({ reason: "image-missing", fault: "host", image: spec.image });
    const body = buildCreateBody(spec, {
      image,
      seccomp: seccompOption(context),
      product: context.product,
      ioDevice: device?.path ?? null,
      cgroupParent: ownGroup?.parentPath ?? null,
      pidsLimit: ownGroup?.pidsLimit ?? spec.caps.pids,
      maxUserProcesses: context.maxUserProcesses,
    });
    container = await context.gate.use(() =>
      client.call("create container", (abortSignal) =>
        client.docker.createContainer({ ...body, abortSignal }),
      ),
    );
    return ok(openSandbox(context, spec, container, { ownGroup, device }));
  } catch (error) {
    if (!isUnreachable(error)) return err(createFailure(spec, error));
    const left = await findLeftBehind(context, spec);
    if (left === null) {
      return err({ reason: "engine-lost", fault: "host", phase: "create", message: messageOf(error) });
    }
    container = client.docker.getContainer(left.Id);
    return ok(openSandbox(context, spec, container, { ownGroup, device }));
  } finally {
    if (container === null) await ownGroup?.remove(context.logger);
  }
}

function createFailure(spec: SandboxSpec, error: unknown): Failure {
  if (isGone(error)) return { reason: "image-missing", fault: "host", image: spec.image };
  if (statusOf(error) === null) throw error;
  const message = `container ${spec.name}: ${messageOf(error)}`;
  return { reason: "host-error", fault: "host", phase: "create", message };
}

/** Finds the container a broken create left behind; null where the engine has none or does not come back. */
async function findLeftBehind(
  context: EngineContext,
  spec: SandboxSpec,
): Promise<ContainerInspectInfo | null> {
  const { client } = context;
  const deadlineMs = performance.now() + context.lostAfterMs;
  while (performance.now() < deadlineMs) {
    try {
      const found = await client.call("inspect container", () =>
        client.docker.getContainer(spec.name).inspect(),
      );
      const isOurs = Object.entries(sandboxLabels(spec)).every(
        ([key, value]) => found.Config.Labels[key] === value,
      );
      return isOurs && found.State.Status === "created" ? found : null;
    } catch (error) {
      if (!isUnreachable(error)) return null;
    }
    await delay(LOOK_AGAIN_MS);
  }
  return null;
}

function openSandbox(
  context: EngineContext,
  spec: SandboxSpec,
  container: Container,
  placement: Placement,
): CreatedSandbox {
  const remove = async () => {
    await removeContainer(context.client, container.id);
    await placement.ownGroup?.remove(context.logger);
  };
  return {
    id: container.id,
    remove,
    start: (sink, { strict }) =>
      startSandbox(context, spec, { container, placement, sink, refuse: strict ? remove : null }),
  };
}
