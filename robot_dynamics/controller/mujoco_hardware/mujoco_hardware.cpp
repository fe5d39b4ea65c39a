// SPDX-License-Identifier: Apache-2.0
// A robot simulated by MuJoCo: efforts in, positions and rates out. For demos, benchmarks and tests.
//
// Hardware parameters: model (an .mjb file), timestep (s, of the integrator), log (a CSV file: time,
// then q, qd and effort of each joint, then the system's time of reading and the time from reading to
// writing, in s), held (1: the robot stands still, but is computed), nan_at and error_at (s of simulated
// time at which a position is NaN for one period, and at which reading fails), off_at and off (s from
// which on a position is wrong, and by how much), fault_joint (the joint of this position; default: the
// first). Joint parameter: place, the joint's index in MuJoCo's vectors. A joint without a command
// interface has a sensor and no motor.
#include <mujoco/mujoco.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "hardware_interface/system_interface.hpp"
#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

namespace mujoco_hardware
{
using hardware_interface::CallbackReturn;
using hardware_interface::return_type;

class MujocoHardware : public hardware_interface::SystemInterface
{
public:
  CallbackReturn on_init(const hardware_interface::HardwareComponentInterfaceParams & params) override
  {
    if (hardware_interface::SystemInterface::on_init(params) != CallbackReturn::SUCCESS) {
      return CallbackReturn::ERROR;
    }
    const auto & given = info_.hardware_parameters;
    model_ = mj_loadModel(given.at("model").c_str(), nullptr);
    if (!model_) {
      return CallbackReturn::ERROR;
    }
    model_->opt.timestep = std::stod(given.at("timestep"));
    data_ = mj_makeData(model_);
    const auto number = [&given](const char * name, double otherwise) {
      return given.count(name) ? std::stod(given.at(name)) : otherwise;
    };
    nan_at_ = number("nan_at", HUGE_VAL);
    error_at_ = number("error_at", HUGE_VAL);
    off_at_ = number("off_at", HUGE_VAL);
    off_ = number("off", 0.0);
    is_held_ = number("held", 0.0) == 1.0;
    faulty_ = given.count("fault_joint") ? given.at("fault_joint") : info_.joints.at(0).name;
    if (given.count("log")) {
      log_ = std::fopen(given.at("log").c_str(), "w");
    }
    for (const auto & joint : info_.joints) {
      joints_.push_back({joint.name, std::stoi(joint.parameters.at("place")), !joint.command_interfaces.empty()});
    }
    // all initial positions, including passive joints and rotors
    for (int i = 0; i < model_->nq; i++) {
      const auto found = given.find("qpos" + std::to_string(i));
      if (found != given.end()) {
        data_->qpos[i] = std::stod(found->second);
      }
    }
    mj_forward(model_, data_);
    return CallbackReturn::SUCCESS;
  }

  ~MujocoHardware() override
  {
    if (log_) std::fclose(log_);
    mj_deleteData(data_);
    mj_deleteModel(model_);
  }

  return_type read(const rclcpp::Time &, const rclcpp::Duration &) override
  {
    read_at_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    if (data_->time >= error_at_) {
      error_at_ = HUGE_VAL;
      return return_type::ERROR;
    }
    for (const auto & joint : joints_) {
      double q = data_->qpos[joint.place];
      if (joint.name == faulty_) {
        if (data_->time >= off_at_) q += off_;
        if (data_->time >= nan_at_) {
          nan_at_ = HUGE_VAL;
          q = std::nan("");
        }
      }
      set_state(joint.name + "/" + hardware_interface::HW_IF_POSITION, q);
      set_state(joint.name + "/" + hardware_interface::HW_IF_VELOCITY, data_->qvel[joint.place]);
    }
    read_ = std::chrono::steady_clock::now();
    return return_type::OK;
  }

  return_type write(const rclcpp::Time &, const rclcpp::Duration & period) override
  {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - read_;
    bool has_brakes_on = false;  // until all joints are commanded
    if (log_) std::fprintf(log_, "%.4f", data_->time);
    for (const auto & joint : joints_) {
      const double effort =
        joint.has_motor ? get_command(joint.name + "/" + hardware_interface::HW_IF_EFFORT) : 0.0;
      has_brakes_on = has_brakes_on || !std::isfinite(effort);
      data_->qfrc_applied[joint.place] = effort;
      if (log_) std::fprintf(log_, ",%.9g,%.9g,%.17g", data_->qpos[joint.place], data_->qvel[joint.place], effort);
    }
    if (log_) std::fprintf(log_, ",%.9f,%.9f\n", read_at_, took.count());
    // a robot does not wait for a late loop: the torque is held for as long as the period was
    until_ += std::fmin(period.seconds(), 0.1);
    while (data_->time < until_ - 1e-9) {
      if (has_brakes_on || is_held_) {
        if (is_held_) mj_forward(model_, data_);
        data_->time += model_->opt.timestep;
      } else {
        mj_step(model_, data_);
      }
    }
    return return_type::OK;
  }

private:
  struct Joint
  {
    std::string name;
    int place;
    bool has_motor;
  };
  mjModel * model_{nullptr};
  mjData * data_{nullptr};
  std::vector<Joint> joints_;
  bool is_held_{false};
  std::chrono::steady_clock::time_point read_;
  std::string faulty_;
  double until_{0.0}, read_at_{0.0}, nan_at_{HUGE_VAL}, error_at_{HUGE_VAL}, off_at_{HUGE_VAL}, off_{0.0};
  std::FILE * log_{nullptr};
};
}  // namespace mujoco_hardware

PLUGINLIB_EXPORT_CLASS(mujoco_hardware::MujocoHardware, hardware_interface::SystemInterface)
